// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/registry/kube"
)

// allows is a behaviour: the API allows what it is asked.
func allows(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		panic(err)
	}
	review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "of " + review.Spec.User}
	answer(w, http.StatusCreated, review)
}

// says is a behaviour: the API answers with a text.
func says(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	}
}

func ofAnn() *authorizationv1.SubjectAccessReviewSpec {
	return &authorizationv1.SubjectAccessReviewSpec{
		User: "ann", Groups: []string{"dev"}, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Version: "*", Resource: "pods"},
	}
}

const wellFormed = `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":`

// J4 What an API answers, and what it means. Nothing but a well formed answer is one.
func TestAuthorizerAnswers(t *testing.T) {
	const failed, forbidden = "the cluster's API could not be asked for a subjectaccessreview", "the cluster's API does not let the dispatcher create subjectaccessreviews"
	for _, row := range []struct {
		name string
		does http.HandlerFunc
		want authorizationv1.SubjectAccessReviewStatus
		err  string
	}{
		{"allows", allows, authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "of ann"}, ""},
		{"denies", says(201, wellFormed+`{"allowed":false,"denied":true,"reason":"a"}}`), authorizationv1.SubjectAccessReviewStatus{Denied: true, Reason: "a"}, ""},
		{"has no opinion, and an error", says(201, wellFormed+`{"allowed":false,"evaluationError":"b"}}`), authorizationv1.SubjectAccessReviewStatus{EvaluationError: "b"}, ""},
		{"allows and denies", says(201, wellFormed+`{"allowed":true,"denied":true}}`), authorizationv1.SubjectAccessReviewStatus{}, "the cluster's API both allows and denies"},
		{"does not say", says(201, wellFormed+`{}}`), authorizationv1.SubjectAccessReviewStatus{}, failed},
		{"says it twice", says(201, wellFormed+`{"allowed":false,"allowed":true}}`), authorizationv1.SubjectAccessReviewStatus{}, failed},
		{"says it in another case", says(201, wellFormed+`{"Allowed":true}}`), authorizationv1.SubjectAccessReviewStatus{}, failed},
		{"another kind", says(201, `{"apiVersion":"authorization.k8s.io/v1","kind":"LocalSubjectAccessReview","status":{"allowed":true}}`), authorizationv1.SubjectAccessReviewStatus{}, failed},
		{"too large", says(201, wellFormed+`{"allowed":true,"reason":"`+strings.Repeat("a", 70<<10)+`"}}`), authorizationv1.SubjectAccessReviewStatus{}, failed},
		{"no JSON", says(201, "<html>"), authorizationv1.SubjectAccessReviewStatus{}, failed},
		{"another status", says(200, wellFormed+`{"allowed":true}}`), authorizationv1.SubjectAccessReviewStatus{}, failed},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, authorizationv1.SubjectAccessReviewStatus{}, failed},
		{"forbidden", fails(403, metav1.StatusReasonForbidden), authorizationv1.SubjectAccessReviewStatus{}, forbidden},
		{"unauthorized", fails(401, metav1.StatusReasonUnauthorized), authorizationv1.SubjectAccessReviewStatus{}, forbidden},
		{"too busy", fails(429, metav1.StatusReasonTooManyRequests), authorizationv1.SubjectAccessReviewStatus{}, failed},
		{"hangs", hangs, authorizationv1.SubjectAccessReviewStatus{}, "the cluster's API did not answer in time"},
	} {
		t.Run("J4 "+row.name, func(t *testing.T) {
			a := newAPI(t)
			a.now("review", row.does)
			authorizer := kube.NewAuthorizers(kube.AuthorizersConfig{}).Authorizer("east", a.access())
			defer authorizer.Close()
			authorizer.Open(t.Context())
			deadline := time.Now().Add(time.Minute)
			if row.name == "hangs" {
				deadline = time.Now().Add(100 * time.Millisecond)
			}
			status, err := authorizer.Authorize(ofAnn(), deadline)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if status != row.want || text != row.err {
				t.Errorf("%+v, %v", status, err)
			}
		})
	}
}

// The one of a cluster goes on as long as its kubeconfig says the same, with what it knows,
// and another one begins with nothing.
func TestAuthorizersOfClusters(t *testing.T) {
	a := newAPI(t)
	a.now("review", allows)
	var mu sync.Mutex
	came := map[kube.AccessResult]int{}
	table := kube.NewAuthorizers(kube.AuthorizersConfig{Asked: func(cluster string, result kube.AccessResult, took time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if came[result]++; cluster != "east" && cluster != "west" || took < 0 {
			t.Errorf("%s: %s in %v", cluster, result, took)
		}
	}})
	ask := func(cluster, server string) {
		access := a.access()
		access.Server += server
		authorizer := table.Authorizer(cluster, access)
		authorizer.Open(t.Context())
		t.Cleanup(authorizer.Close)
		if status, err := authorizer.Authorize(ofAnn(), time.Time{}); err != nil || !status.Allowed {
			t.Errorf("%+v, %v", status, err)
		}
	}
	ask("east", "")
	if same := table.Authorizer("east", a.access()); same.Identity() != table.Authorizer("east", a.access()).Identity() {
		t.Error("it is another one")
	} else if _, err := same.Authorize(ofAnn(), time.Time{}); err != nil {
		t.Error(err)
	}
	ask("west", "")
	ask("east", "/")
	if diff := cmp.Diff(map[kube.AccessResult]int{kube.AccessAllowed: 3, kube.AccessCached: 1}, came); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]kube.AuthorizerStatus{{Cluster: "east", Answered: 1}, {Cluster: "west", Answered: 1}}, table.Status()); diff != "" {
		t.Error(diff)
	}
	a.now("review", fails(403, metav1.StatusReasonForbidden))
	other := ofAnn()
	other.User = "bob"
	_, _ = table.Authorizer("west", a.access()).Authorize(other, time.Time{})
	if s := table.Status()[1]; s.Failed != 1 || !strings.Contains(s.LastError, `HTTP status 403, with the message "the words of the API"`) {
		t.Errorf("%+v", s)
	}
}

// O8 What the authorizer has said of late is known without a request, and nothing else is.
func TestO8KnownAccess(t *testing.T) {
	a := newAPI(t)
	a.now("review", allows)
	authorizer := kube.NewAuthorizers(kube.AuthorizersConfig{}).Authorizer("east", a.access())
	known := authorizer.(chain.KnownAuthorizer)
	if _, err := known.Known(ofAnn()); !errors.Is(err, hook.ErrNotLookedUp) || a.times("review") != 0 {
		t.Errorf("before it is asked: %v, %d requests", err, a.times("review"))
	}
	if _, err := authorizer.Authorize(ofAnn(), time.Time{}); err != nil {
		t.Error(err)
	}
	if status, err := known.Known(ofAnn()); err != nil || !status.Allowed || a.times("review") != 1 {
		t.Errorf("afterwards: %+v, %v, %d requests", status, err, a.times("review"))
	}
}
