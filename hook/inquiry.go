// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"errors"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	policyschema "github.com/admission-dispatcher/dispatcher/policy/schema"
)

var (
	// ErrNotLookedUp is the error of what the cluster must be asked for.
	ErrNotLookedUp = errors.New("the cluster must be asked for them")

	errNoCaller = errors.New("nothing is known of the cluster")
)

// LookUp takes one of the lookups in clusters that may be under way until done. Whoever has
// an admission wait for a cluster's API takes one first, and holds no turn and no lock: that
// API decides how long it waits. admitted: an admission that has a slot waits; nobody waits
// for others, which are bounded elsewhere. The error is a *CallError.
func (v *View) LookUp(admitted bool) (done func(), err error) {
	if !admitted || v.Account == nil {
		return func() {}, nil
	}
	if done, err = v.Account.LookUp(v.Cluster); err != nil {
		return nil, &CallError{Cause: Shed, Err: err}
	}
	return done, nil
}

// KnownObjects are Objects that know some of what they have without a request to the
// cluster. Other Objects are taken to make one each time.
type KnownObjects interface {
	Objects
	// Known is Get, and KnownList is List, with ErrNotLookedUp where the cluster must be
	// asked.
	Known(namespace, name string) (*Stored, error)
	KnownList(namespace string) ([]*Stored, error)
}

// KnownKinds are Kinds that know what a cluster has said before.
type KnownKinds interface {
	Kinds
	// Known is Types, with ErrNotLookedUp where the cluster must be asked.
	Known(of schema.GroupVersion) (*policyschema.Types, error)
}

// KnownCaller is a Caller that knows some of its answers without a request to the cluster.
type KnownCaller interface {
	Caller
	// KnownLabels is StoredLabels, and KnownAccess is Authorize, with ErrNotLookedUp where
	// the cluster must be asked.
	KnownLabels(namespace string) (map[string]string, error)
	KnownAccess(access *authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error)
}

// lookedUp is what is known, or else what the cluster says in one of the lookups.
func lookedUp[T any](v *View, admitted bool, known, ask func() (T, error)) (answer T, err error) {
	if known != nil {
		if answer, err = known(); !errors.Is(err, ErrNotLookedUp) {
			return answer, err
		}
	}
	done, err := v.LookUp(admitted)
	if err != nil {
		return answer, err
	}
	defer done()
	return ask()
}

// Stored returns an object that the cluster stores, as Objects.Get, for who asks the
// Question. The error is a *CallError where too many wait for the cluster's API.
func (q *Question) Stored(from Objects, namespace, name string) (*Stored, error) {
	var known func() (*Stored, error)
	if k, ok := from.(KnownObjects); ok {
		known = func() (*Stored, error) { return k.Known(namespace, name) }
	}
	return lookedUp(q.View, !q.Shadow, known, func() (*Stored, error) { return from.Get(namespace, name, q.Deadline) })
}

// StoredList returns what Objects.List does, and is else as Stored.
func (q *Question) StoredList(from Objects, namespace string) ([]*Stored, error) {
	var known func() ([]*Stored, error)
	if k, ok := from.(KnownObjects); ok {
		known = func() ([]*Stored, error) { return k.KnownList(namespace) }
	}
	return lookedUp(q.View, !q.Shadow, known, func() ([]*Stored, error) { return from.List(namespace, q.Deadline) })
}

// Types returns what Kinds.Types does, and is else as Stored.
func (q *Question) Types(from Kinds, of schema.GroupVersion) (*policyschema.Types, error) {
	var known func() (*policyschema.Types, error)
	if k, ok := from.(KnownKinds); ok {
		known = func() (*policyschema.Types, error) { return k.Known(of) }
	}
	return lookedUp(q.View, !q.Shadow, known, func() (*policyschema.Types, error) { return from.Types(of, q.Deadline) })
}

// StoredLabels returns what Caller.StoredLabels does, and is else as Stored.
func (q *Question) StoredLabels(namespace string) (map[string]string, error) {
	if q.Caller == nil {
		return nil, errNoCaller
	}
	var known func() (map[string]string, error)
	if k, ok := q.Caller.(KnownCaller); ok {
		known = func() (map[string]string, error) { return k.KnownLabels(namespace) }
	}
	return lookedUp(q.View, !q.Shadow, known, func() (map[string]string, error) { return q.Caller.StoredLabels(namespace, q.Deadline) })
}

// Authorize returns what Caller.Authorize does, and is else as Stored.
func (q *Question) Authorize(access *authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	return q.authorize(access, q.Deadline, !q.Shadow)
}

func (v *View) authorize(access *authorizationv1.SubjectAccessReviewSpec, deadline time.Time, admitted bool) (authorizationv1.SubjectAccessReviewStatus, error) {
	type answer = authorizationv1.SubjectAccessReviewStatus
	if v.Caller == nil {
		return answer{}, errNoCaller
	}
	var known func() (answer, error)
	if k, ok := v.Caller.(KnownCaller); ok {
		known = func() (answer, error) { return k.KnownAccess(access) }
	}
	return lookedUp(v, admitted, known, func() (answer, error) { return v.Caller.Authorize(access, deadline) })
}

// Answer has the authorizer of the calling cluster answer what an expression over variables
// has asked. It waits for that, well within the deadline. An error of the authorizer is what
// the expression sees. admitted: an admission that has a slot waits; it is shed with a
// *CallError where too many wait.
func (v *View) Answer(variables *celenv.Variables, asked *celenv.Unanswered, deadline time.Time, admitted bool) error {
	status, err := v.authorize(&asked.Access, deadline, admitted)
	if call, ok := errors.AsType[*CallError](err); ok {
		return call
	}
	variables.Answer(asked, status, err)
	return nil
}
