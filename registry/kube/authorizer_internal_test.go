// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/admission-dispatcher/dispatcher/internal/harness/fuzz"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// reviewer answers questions after a while, and counts them.
type reviewer struct {
	takes time.Duration
	says  authorizationv1.SubjectAccessReviewStatus
	err   error

	mu               sync.Mutex
	times, now, most int
}

func (r *reviewer) review(ctx context.Context, _ question) (authorizationv1.SubjectAccessReviewStatus, error) {
	r.mu.Lock()
	r.times++
	r.now++
	r.most = max(r.most, r.now)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.now--
	}()
	select {
	case <-ctx.Done():
		return authorizationv1.SubjectAccessReviewStatus{}, ctx.Err()
	case <-time.After(r.takes):
	}
	return r.says, r.err
}

func (r *reviewer) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.times
}

// askedOf returns the authorizer of a cluster whose API is r.
func (r *reviewer) askedOf(of *Authorizers) *Authorizer {
	a := newAuthorizer(of, 1, "east", manifest.KubeAccess{Server: "https://east.example"})
	a.review = r.review
	return a
}

func newReviewed(r *reviewer) *Authorizer { return r.askedOf(NewAuthorizers(AuthorizersConfig{})) }

func mayRead(user string) *authorizationv1.SubjectAccessReviewSpec {
	return &authorizationv1.SubjectAccessReviewSpec{
		User: user, UID: "7", Groups: []string{"dev"}, Extra: map[string]authorizationv1.ExtraValue{"scopes": {"a"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Version: "*", Resource: "pods", Namespace: "shop"},
	}
}

// An allow counts for 5 min, anything else for 30 s, and an error not at all.
func TestAuthorizersAnswersAreKept(t *testing.T) {
	for _, row := range []struct {
		name  string
		says  authorizationv1.SubjectAccessReviewStatus
		err   error
		lasts time.Duration
	}{
		{"J3 an allow", authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "RBAC"}, nil, 5 * time.Minute},
		{"J3 no opinion", authorizationv1.SubjectAccessReviewStatus{}, nil, 30 * time.Second},
		{"J3 a deny", authorizationv1.SubjectAccessReviewStatus{Denied: true, Reason: "no"}, nil, 30 * time.Second},
		{"J3 an allow beside an error", authorizationv1.SubjectAccessReviewStatus{Allowed: true, EvaluationError: "no such role"}, nil, 30 * time.Second},
		{"J3 a reason that is too long to be kept", authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: strings.Repeat("a", maxAnswerText+1)}, nil, 0},
		{"J4 an error", authorizationv1.SubjectAccessReviewStatus{Allowed: true}, errNoJSON, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &reviewer{says: row.says, err: row.err}
				a := newReviewed(r)
				asks := func() {
					t.Helper()
					status, err := a.Authorize(mayRead("ann"), time.Now().Add(time.Second))
					if row.err == nil && (status != row.says || err != nil) || row.err != nil && (err == nil || status.Allowed) {
						t.Errorf("%+v, %v", status, err)
					}
				}
				asks()
				if row.lasts > 0 {
					<-time.After(row.lasts - time.Nanosecond)
					asks()
					if r.count() != 1 {
						t.Errorf("asked %d times", r.count())
					}
					<-time.After(2 * time.Nanosecond)
				}
				asks()
				if r.count() != 2 {
					t.Errorf("asked %d times", r.count())
				}
			})
		})
	}
}

// J3 An answer is that to the very same question.
func TestAnswersAreToOneQuestion(t *testing.T) {
	r := &reviewer{says: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}
	a := newReviewed(r)
	for i, change := range []func(*authorizationv1.SubjectAccessReviewSpec){
		func(*authorizationv1.SubjectAccessReviewSpec) {},
		func(s *authorizationv1.SubjectAccessReviewSpec) { s.User = "bob" },
		func(s *authorizationv1.SubjectAccessReviewSpec) { s.UID = "8" },
		func(s *authorizationv1.SubjectAccessReviewSpec) { s.Groups = nil },
		func(s *authorizationv1.SubjectAccessReviewSpec) { s.Groups = []string{"dev", "ops"} },
		func(s *authorizationv1.SubjectAccessReviewSpec) { s.Groups = []string{"dev,ops"} },
		func(s *authorizationv1.SubjectAccessReviewSpec) { s.Extra["scopes"] = []string{"a", "b"} },
		func(s *authorizationv1.SubjectAccessReviewSpec) { s.Extra["more"] = []string{"a"} },
		func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes.Verb = "list" },
		func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes.Group = "apps" },
		func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes.Version = "v1" },
		func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes.Resource = "secrets" },
		func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes.Subresource = "exec" },
		func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes.Namespace = "bank" },
		func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes.Name = "web" },
		func(s *authorizationv1.SubjectAccessReviewSpec) {
			s.ResourceAttributes.FieldSelector = &authorizationv1.FieldSelectorAttributes{RawSelector: "a=b"}
		},
		func(s *authorizationv1.SubjectAccessReviewSpec) {
			s.ResourceAttributes.LabelSelector = &authorizationv1.LabelSelectorAttributes{RawSelector: "a=b"}
		},
		func(s *authorizationv1.SubjectAccessReviewSpec) {
			s.ResourceAttributes, s.NonResourceAttributes = nil, &authorizationv1.NonResourceAttributes{Path: "/healthz", Verb: "get"}
		},
	} {
		for range 2 {
			access := mayRead("ann")
			change(access)
			if _, err := a.Authorize(access, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		if r.count() != i+1 {
			t.Errorf("change %d: asked %d times", i, r.count())
		}
	}
}

// J4 An answer takes half of the time that is left at most.
func TestAuthorizerTakesBoundedTime(t *testing.T) {
	for _, row := range []struct {
		name              string
		takes, left, want time.Duration
		err               error
	}{
		{"in time", 100 * time.Millisecond, time.Second, 100 * time.Millisecond, nil},
		{"too slow", time.Hour, 3 * time.Second, 1500 * time.Millisecond, errNoAnswer},
		{"too slow, long deadline", time.Hour, time.Minute, 10 * time.Second, errNoAnswer},
		{"too slow, no deadline", time.Hour, 0, 10 * time.Second, errNoAnswer},
		{"deadline over", 0, -time.Second, 0, errNoTime},
	} {
		t.Run("J4 "+row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, start := newReviewed(&reviewer{takes: row.takes, says: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}), time.Now()
				var deadline time.Time
				if row.left != 0 {
					deadline = start.Add(row.left)
				}
				status, err := a.Authorize(mayRead("ann"), deadline)
				if took := time.Since(start); !errors.Is(err, row.err) || took != row.want || status.Allowed != (row.err == nil) {
					t.Errorf("%+v, %v after %v", status, err, took)
				}
			})
		})
	}
}

// J5 Of those who ask the same at once one asks the cluster, and who has more time than
// that one asks again.
func TestEqualQuestionsAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reviewer{takes: time.Second, says: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}
		a := newReviewed(r)
		var all sync.WaitGroup
		ask := func(left time.Duration, want error) {
			all.Go(func() {
				if status, err := a.Authorize(mayRead("ann"), time.Now().Add(left)); !errors.Is(err, want) || status.Allowed != (want == nil) {
					t.Errorf("with %v: %+v, %v", left, status, err)
				}
			})
			synctest.Wait()
		}
		ask(time.Second, errNoAnswer) // waits for 500 ms
		for range 50 {
			ask(10*time.Second, nil)
		}
		all.Wait()
		if r.count() != 2 {
			t.Errorf("asked %d times", r.count())
		}
		if s := a.status(); s.Answered != 1 || s.Cached != 49 || s.Failed != 1 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// J5 An API that hangs has a bounded number of requests and of those who wait. Who comes
// then is told at once, and another cluster notices nothing.
func TestAuthorizerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := NewAuthorizers(AuthorizersConfig{})
		hanging := &reviewer{takes: time.Hour}
		a := hanging.askedOf(of)
		well := (&reviewer{says: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}).askedOf(of)
		var all sync.WaitGroup
		for i := range maxAskers {
			all.Go(func() {
				if _, err := a.Authorize(mayRead(fmt.Sprint(i)), time.Now().Add(time.Minute)); !errors.Is(err, errNoAnswer) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		if _, err := a.Authorize(mayRead("one more"), start.Add(time.Minute)); !errors.Is(err, errManyAsk) || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if status, err := well.Authorize(mayRead("ann"), start.Add(time.Second)); err != nil || !status.Allowed || time.Since(start) != 0 {
			t.Errorf("the other cluster: %+v, %v", status, err)
		}
		all.Wait()
		if hanging.most != maxReviews {
			t.Errorf("%d requests at once", hanging.most)
		}
		if s := a.status(); s.Shed != 1 || s.Failed != maxAskers || s.Waiting != 0 || len(a.flights) != 0 || len(a.places) != 0 {
			t.Errorf("%+v, %d, %d", s, len(a.flights), len(a.places))
		}
	})
}

// J3 A user with any number of questions takes bounded memory, and none of another
// cluster's answers.
func TestAuthorizersAnswersAreBounded(t *testing.T) {
	r := &reviewer{says: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}
	of := NewAuthorizers(AuthorizersConfig{})
	a, other := r.askedOf(of), r.askedOf(of)
	ask := func(a *Authorizer, user string) {
		if _, err := a.Authorize(mayRead(user), time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	ask(other, "ann")
	for i := range 2 * maxAnswers {
		ask(a, fmt.Sprint(i))
	}
	if n := len(a.answers.Keys()); n != maxAnswers {
		t.Errorf("%d are kept", n)
	}
	before := r.count()
	if ask(other, "ann"); r.count() != before {
		t.Error("it is asked again")
	}
	large := mayRead(strings.Repeat("a", maxQuestion))
	if _, err := a.Authorize(large, time.Time{}); !errors.Is(err, errLargeQuestion) || r.count() != before {
		t.Errorf("a large question: %v", err)
	}
}

// J4 A question whose request panics has no answer: nothing is kept of it.
func TestJ4RequestThatPanics(t *testing.T) {
	r := &reviewer{says: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}
	a := newReviewed(r)
	good := a.review
	a.review = func(context.Context, question) (authorizationv1.SubjectAccessReviewStatus, error) { panic("no") }
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is hidden")
			}
		}()
		_, _ = a.Authorize(mayRead("ada"), time.Now().Add(time.Hour))
	}()
	a.review = good
	if status, err := a.Authorize(mayRead("ada"), time.Now().Add(time.Hour)); !status.Allowed || err != nil || r.count() != 1 || a.status().Waiting != 0 {
		t.Errorf("then it answers %+v, %v after %d requests", status, err, r.count())
	}
}

// J3 An answer is kept if its texts together have at most so many bytes.
func TestJ3LongAnswersAreNotKept(t *testing.T) {
	for n, kept := range map[int]bool{maxAnswerText: true, maxAnswerText + 1: false} {
		r := &reviewer{says: authorizationv1.SubjectAccessReviewStatus{Reason: strings.Repeat("a", n-1), EvaluationError: "b"}}
		a := newReviewed(r)
		for range 2 {
			if _, err := a.Authorize(mayRead("ada"), time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		if r.count() == 1 != kept {
			t.Errorf("%d bytes: %d requests", n, r.count())
		}
	}
}

// The status lists who is open, with the newest of a cluster, and the last error only until
// a request is answered.
func TestStatusOfAuthorizers(t *testing.T) {
	of := NewAuthorizers(AuthorizersConfig{})
	r := &reviewer{err: errReviewFailed}
	east, west := r.askedOf(of), newAuthorizer(of, 2, "west", manifest.KubeAccess{})
	east.Open(t.Context())
	west.Open(t.Context())
	_, _ = east.Authorize(mayRead("ada"), time.Now().Add(time.Hour))
	if all := of.Status(); len(all) != 2 || all[0].Cluster != "east" || all[0].Failed != 1 || all[0].LastError == "" {
		t.Errorf("%+v", all)
	}
	r.err = nil
	_, _ = east.Authorize(mayRead("ada"), time.Now().Add(time.Hour))
	if all := of.Status(); all[0].Answered != 1 || all[0].LastError != "" {
		t.Errorf("%+v", all)
	}
	east.Close()
	if all := of.Status(); len(all) != 1 || all[0].Cluster != "west" {
		t.Errorf("after one is closed: %+v", all)
	}
	west.Close()
	if all := of.Status(); len(all) != 0 || len(of.open) != 0 {
		t.Errorf("after both are closed: %+v", all)
	}
}

// Whatever an API sends, only one well formed answer that allows is an allow.
func FuzzReadReview(f *testing.F) {
	for _, text := range []string{
		`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":true,"reason":"a"}}`,
		`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","metadata":{},"spec":{"user":"ann"},"status":{"allowed":false,"denied":true,"evaluationError":"b"}}`,
		`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":false,"allowed":true}}`,
		`{"status":{"allowed":true}}`, `{}`, `null`, `[]`, ``,
	} {
		f.Add([]byte(text))
	}
	fuzz.Run(f, func(t *testing.T, text []byte) {
		status, err := readReview(bytes.NewReader(text))
		if err != nil {
			if status != (authorizationv1.SubjectAccessReviewStatus{}) {
				t.Errorf("%v comes with %+v", err, status)
			}
			return
		}
		var sent struct{ Status map[string]any }
		if err := json.Unmarshal(text, &sent); err != nil || sent.Status["allowed"] != status.Allowed || status.Allowed && status.Denied {
			t.Errorf("%+v of %v, %v", status, sent, err)
		}
	})
}
