// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

const (
	// allowFor and denyFor are how long an answer counts, as for kube-apiserver's webhook
	// authorizer: a right that is taken away is one for as long.
	allowFor = 5 * time.Minute
	denyFor  = 30 * time.Second
	// maxAnswers bounds the answers of one cluster that are kept, and maxAnswerText the
	// text of each in bytes: its users ask as many questions as they like.
	maxAnswers    = 2048
	maxAnswerText = 2 << 10
	// maxReviews bounds the requests of one cluster that are under way, maxAskers those
	// who wait for one. Who comes when there are as many is shed.
	maxReviews = 32
	maxAskers  = 256
	// maxQuestion bounds a question, and maxAnswer what an answer says beside it, in bytes.
	maxQuestion = 256 << 10
	maxAnswer   = 64 << 10
	// maxReviewTime bounds what somebody waits for an answer. It is never more than half of
	// the time until the deadline.
	maxReviewTime = 10 * time.Second
)

// What a policy, and by it a user, is told. The API's own words may name hosts and rights.
var (
	errReviewForbidden = errors.New("the cluster's API does not let the dispatcher create subjectaccessreviews")
	errReviewFailed    = errors.New("the cluster's API could not be asked for a subjectaccessreview")
	errBothAnswers     = errors.New("the cluster's API both allows and denies")
	errManyAsk         = errors.New("too many questions to the cluster's authorizer are under way")
	errLargeQuestion   = fmt.Errorf("the question to the cluster's authorizer is larger than %d KiB", maxQuestion>>10)
)

// Authorizer asks the authorizer of one cluster, by SubjectAccessReviews. What the cluster
// has answered counts for a while for the very same question: user, uid, groups and extra
// included. An error is no answer, and is not kept. It may be asked before it is open and
// after it was closed. It is a chain.Resource, and starts no goroutine.
type Authorizer struct {
	of      *Authorizers
	number  int
	cluster string
	access  manifest.KubeAccess
	client  *client
	broken  error // why there is no client
	review  func(context.Context, question) (authorizationv1.SubjectAccessReviewStatus, error)

	answers *cache.LRUExpireCache // authorizationv1.SubjectAccessReviewStatus by questionKey
	places  chan struct{}         // of requests under way
	askers  chan struct{}         // of those who wait for an answer
	tally   accessTally

	mu      sync.Mutex
	flights map[questionKey]*accessFlight
}

// accessFlight is a request under way.
type accessFlight struct {
	done   chan struct{} // closed when the rest is set
	status authorizationv1.SubjectAccessReviewStatus
	err    error
}

// question is what an API is sent, by a hash over which its answer is known.
type question struct {
	key  questionKey
	text []byte
}

type questionKey [sha256.Size]byte

func newAuthorizer(of *Authorizers, number int, cluster string, access manifest.KubeAccess) *Authorizer {
	a := &Authorizer{
		of: of, number: number, cluster: cluster, access: access,
		answers: cache.NewLRUExpireCache(maxAnswers),
		places:  make(chan struct{}, maxReviews),
		askers:  make(chan struct{}, maxAskers),
		flights: map[questionKey]*accessFlight{},
	}
	a.client, a.broken = newClient(access, of.cfg.Allowed)
	a.review = a.request
	return a
}

var _ chain.AuthorizerSource = (*Authorizer)(nil)

// Identity implements chain.Resource.
func (a *Authorizer) Identity() string { return fmt.Sprint("authorizer ", a.number) }

// Open lists it as the cluster's.
func (a *Authorizer) Open(context.Context) { a.of.opened(a) }

// Ready returns nil: nothing waits for a cluster's API.
func (a *Authorizer) Ready(*chain.DryRun) error { return nil }

// Busy returns false: who asks while it is closed asks the cluster.
func (a *Authorizer) Busy() bool { return false }

// Close gives up the connections that nobody uses.
func (a *Authorizer) Close() {
	a.of.closed(a)
	if a.client != nil {
		a.client.close()
	}
}

// String names the cluster.
func (a *Authorizer) String() string { return "authorizer of cluster " + a.cluster }

// Authorize implements chain.Authorizer: with what the cluster has answered of late, or
// else by asking it, which takes at most half of the time until the deadline.
func (a *Authorizer) Authorize(access *authorizationv1.SubjectAccessReviewSpec, deadline time.Time) (authorizationv1.SubjectAccessReviewStatus, error) {
	begin := time.Now()
	status, came, err := a.authorize(access, deadline)
	a.record(came, time.Since(begin))
	return status, err
}

func (a *Authorizer) authorize(access *authorizationv1.SubjectAccessReviewSpec, deadline time.Time) (authorizationv1.SubjectAccessReviewStatus, AccessResult, error) {
	q, err := questionOf(access)
	if err != nil {
		return authorizationv1.SubjectAccessReviewStatus{}, AccessFailed, err
	}
	if status, ok := a.known(q.key); ok {
		return status, AccessCached, nil
	}
	select {
	case a.askers <- struct{}{}:
	default:
		return authorizationv1.SubjectAccessReviewStatus{}, AccessShed, errManyAsk
	}
	defer func() { <-a.askers }()
	wait := maxReviewTime
	if !deadline.IsZero() {
		wait = min(wait, time.Until(deadline)/2)
	}
	if wait <= 0 {
		return authorizationv1.SubjectAccessReviewStatus{}, AccessFailed, errNoTime
	}
	// The caller's shutdown and trace do not matter to an answer that others may wait for.
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return a.ask(ctx, q)
}

// Known implements chain.KnownAuthorizer: with what the cluster has answered of late.
func (a *Authorizer) Known(access *authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	if q, err := questionOf(access); err == nil {
		if status, ok := a.known(q.key); ok {
			a.record(AccessCached, 0)
			return status, nil
		}
	}
	return authorizationv1.SubjectAccessReviewStatus{}, hook.ErrNotLookedUp
}

// questionOf is the question as it is sent. Two that are sent alike have one answer.
func questionOf(access *authorizationv1.SubjectAccessReviewSpec) (question, error) {
	text, err := json.Marshal(&authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: reviewKind},
		Spec:     *access,
	})
	if err != nil {
		return question{}, errReviewFailed
	}
	if len(text) > maxQuestion {
		return question{}, errLargeQuestion
	}
	return question{sha256.Sum256(text), text}, nil
}

// known returns what the cluster has answered of late.
func (a *Authorizer) known(key questionKey) (authorizationv1.SubjectAccessReviewStatus, bool) {
	kept, ok := a.answers.Get(key)
	if !ok {
		return authorizationv1.SubjectAccessReviewStatus{}, false
	}
	return kept.(authorizationv1.SubjectAccessReviewStatus), true
}

// ask waits for the request that is under way, or makes one. One that failed for lack of
// its own asker's time is not the answer for those who have more.
func (a *Authorizer) ask(ctx context.Context, q question) (authorizationv1.SubjectAccessReviewStatus, AccessResult, error) {
	for {
		f, mine := a.join(q.key)
		if mine {
			a.fly(ctx, q, f)
			return f.status, resultOf(&f.status, f.err), f.err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return authorizationv1.SubjectAccessReviewStatus{}, AccessFailed, errNoAnswer
		}
		switch {
		case f.err == nil:
			return f.status, AccessCached, nil
		case !errors.Is(f.err, errNoAnswer):
			return f.status, AccessFailed, f.err
		}
	}
}

// join returns the request for a question, and whether it is the caller's to make.
func (a *Authorizer) join(key questionKey) (f *accessFlight, mine bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f := a.flights[key]; f != nil {
		return f, false
	}
	f = &accessFlight{done: make(chan struct{})}
	a.flights[key] = f
	return f, true
}

// fly makes the request in one of the places, hands the answer to those who wait, and
// keeps it for a while. Even if it panics nobody waits for ever.
func (a *Authorizer) fly(ctx context.Context, q question, f *accessFlight) {
	f.err = errReviewFailed
	defer func() {
		if f.err == nil {
			a.keep(q.key, f.status)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.flights, q.key)
		close(f.done)
	}()
	select {
	case a.places <- struct{}{}:
	case <-ctx.Done():
		f.err = errNoAnswer
		return
	}
	defer func() { <-a.places }()
	status, err := a.review(ctx, q)
	if err != nil {
		a.tally.failed(err)
		f.err = reviewError(ctx, err)
		return
	}
	f.status, f.err = status, nil
}

// keep keeps an answer. One that says that something went wrong is not believed for long.
func (a *Authorizer) keep(key questionKey, status authorizationv1.SubjectAccessReviewStatus) {
	lasts := denyFor
	if status.Allowed && status.EvaluationError == "" {
		lasts = allowFor
	}
	if len(status.Reason)+len(status.EvaluationError) <= maxAnswerText {
		a.answers.Add(key, status, lasts)
	}
}

// reviewError maps what went wrong to what a user may know.
func reviewError(ctx context.Context, err error) error {
	f, _ := errors.AsType[failure](err)
	switch {
	case errors.Is(err, errBothAnswers):
		return errBothAnswers
	case ctx.Err() != nil:
		return errNoAnswer
	case f.cause == CauseForbidden, f.cause == CauseRefused:
		return errReviewForbidden
	}
	return errReviewFailed
}

// request asks the API.
func (a *Authorizer) request(ctx context.Context, q question) (authorizationv1.SubjectAccessReviewStatus, error) {
	if a.broken != nil {
		return authorizationv1.SubjectAccessReviewStatus{}, a.broken
	}
	body, err := a.client.post(ctx, bytes.NewReader(q.text), "apis/authorization.k8s.io/v1/subjectaccessreviews")
	if err != nil {
		return authorizationv1.SubjectAccessReviewStatus{}, err
	}
	defer func() { _ = body.Close() }()
	limit := int64(len(q.text) + maxAnswer) // the answer repeats the question
	status, err := readReview(&budget{body, limit, limit})
	if err != nil {
		return authorizationv1.SubjectAccessReviewStatus{}, failureOf(err)
	}
	return status, nil
}
