// SPDX-License-Identifier: Apache-2.0

package hook_test

import (
	"errors"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/hook"
	policyschema "github.com/admission-dispatcher/dispatcher/policy/schema"
)

// lookups is an Account with so many lookups left.
type lookups struct {
	memory
	left, taken int
}

func (l *lookups) LookUp(string) (done func(), err error) {
	if l.left == 0 {
		return nil, errors.New("none are left")
	}
	l.left--
	l.taken++
	return func() { l.left++ }, nil
}

// oracle is a cluster, and the objects in it, of which nothing is known but what is called
// "known". A request to it needs a lookup.
type oracle struct {
	hook.Caller

	t     *testing.T
	of    *lookups
	until time.Time
	total int
}

func (o *oracle) known(name string) error {
	if name == "known" {
		return nil
	}
	return hook.ErrNotLookedUp
}

func (o *oracle) request(deadline time.Time) {
	if o.total++; o.of.left != 0 || !deadline.Equal(o.until) {
		o.t.Errorf("it is asked by %v with %d lookups left", deadline, o.of.left)
	}
}

func (o *oracle) Known(_, name string) (*hook.Stored, error) { return &hook.Stored{}, o.known(name) }
func (o *oracle) KnownList(namespace string) ([]*hook.Stored, error) {
	return nil, o.known(namespace)
}
func (o *oracle) KnownLabels(namespace string) (map[string]string, error) {
	return nil, o.known(namespace)
}

func (o *oracle) KnownAccess(access *authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	return authorizationv1.SubjectAccessReviewStatus{}, o.known(access.User)
}

func (o *oracle) Get(_, _ string, deadline time.Time) (*hook.Stored, error) {
	o.request(deadline)
	return &hook.Stored{}, nil
}

func (o *oracle) List(_ string, deadline time.Time) ([]*hook.Stored, error) {
	o.request(deadline)
	return nil, nil
}

func (o *oracle) StoredLabels(_ string, deadline time.Time) (map[string]string, error) {
	o.request(deadline)
	return map[string]string{}, nil
}

func (o *oracle) Authorize(_ *authorizationv1.SubjectAccessReviewSpec, deadline time.Time) (authorizationv1.SubjectAccessReviewStatus, error) {
	o.request(deadline)
	return authorizationv1.SubjectAccessReviewStatus{}, nil
}

// served are the kinds of an oracle.
type served struct{ *oracle }

func (s served) Known(of schema.GroupVersion) (*policyschema.Types, error) {
	return nil, s.known(of.Group)
}

func (s served) Types(_ schema.GroupVersion, deadline time.Time) (*policyschema.Types, error) {
	s.request(deadline)
	return nil, nil
}

// O8 Whatever a cluster is asked for takes a lookup for as long as that lasts, by the
// Question's deadline, and only if it is not known. Without one the call is shed. Nobody
// waits for a Shadow Hook, which takes none.
func TestO8EachRequestTakesALookup(t *testing.T) {
	for name, ask := range map[string]func(q *hook.Question, o *oracle, of string) error{
		"an object": func(q *hook.Question, o *oracle, of string) error { _, err := q.Stored(o, "shop", of); return err },
		"a list":    func(q *hook.Question, o *oracle, of string) error { _, err := q.StoredList(o, of); return err },
		"labels":    func(q *hook.Question, _ *oracle, of string) error { _, err := q.StoredLabels(of); return err },
		"a right": func(q *hook.Question, _ *oracle, of string) error {
			_, err := q.Authorize(&authorizationv1.SubjectAccessReviewSpec{User: of})
			return err
		},
		"types of kinds": func(q *hook.Question, o *oracle, of string) error {
			_, err := q.Types(served{o}, schema.GroupVersion{Group: of})
			return err
		},
		"an object of what is never known": func(q *hook.Question, o *oracle, of string) error {
			if of == "known" {
				return nil
			}
			_, err := q.Stored(struct{ hook.Objects }{o}, "shop", of)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			account := &lookups{left: 1}
			o := &oracle{t: t, of: account, until: time.Now().Add(time.Minute)}
			view := podView(t, account)
			defer view.Release()
			view.Caller = o
			q := &hook.Question{View: view, Deadline: o.until}
			if err := ask(q, o, "known"); err != nil || o.total != 0 || account.taken != 0 {
				t.Errorf("known: %v, %d requests in %d lookups", err, o.total, account.taken)
			}
			if err := ask(q, o, "shop"); err != nil || o.total != 1 || account.taken != 1 || account.left != 1 {
				t.Errorf("%v, %d requests in %d lookups, %d are left", err, o.total, account.taken, account.left)
			}
			account.left = 0
			var call *hook.CallError
			if err := ask(q, o, "shop"); !errors.As(err, &call) || call.Cause != hook.Shed || o.total != 1 {
				t.Errorf("without a lookup: %v, %d requests", err, o.total)
			}
			q.Shadow = true
			if err := ask(q, o, "shop"); err != nil || o.total != 2 || account.taken != 1 {
				t.Errorf("Shadow: %v, %d requests in %d lookups", err, o.total, account.taken)
			}
		})
	}
}
