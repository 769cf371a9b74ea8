// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/match"
)

// Namespaces is the resource that hook.Caller has the objects of for namespaceObject.
func Namespaces() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("namespaces")
}

// NamespaceObject returns the namespace that a request is in, as expressions see it: nil,
// which is null, for what is in none, and for a Namespace itself. As in kube-apiserver a
// request whose namespace is not known is denied whatever the failure policy: the error is
// a *hook.Refusal. Where too many wait for the cluster's API it is a *hook.CallError.
func NamespaceObject(q *hook.Question) (*celenv.Object, error) {
	r := q.Review
	itself := len(r.Kind.Group) == 0 && string(r.Kind.Version) == "v1" && string(r.Kind.Kind) == "Namespace"
	if len(r.Namespace) == 0 || itself {
		return nil, nil
	}
	namespace := string(r.Namespace)
	object, err := storedNamespace(q, namespace)
	shed, isShed := errors.AsType[*hook.CallError](err)
	switch {
	case err == nil:
		return object, nil
	case isShed:
		return nil, shed
	case errors.Is(err, match.ErrNoNamespace):
		return nil, &hook.Refusal{Cause: hook.MatchError, Code: http.StatusNotFound, Err: fmt.Errorf("namespaces %q %w", namespace, err)}
	}
	return nil, &hook.Refusal{Cause: hook.MatchError, Code: hook.MatchError.Code(), Err: fmt.Errorf("namespace %q is not known: %w", namespace, err)}
}

var errNoNamespaces = errors.New("the cluster has no source of namespaces")

type namespaceKey struct{}

// storedNamespace decodes a version of a Namespace once, for all policies and admissions.
func storedNamespace(q *hook.Question, name string) (*celenv.Object, error) {
	objects := namespacesOf(q.View)
	if objects == nil {
		return nil, errNoNamespaces
	}
	stored, err := q.Stored(objects, "", name)
	if stored == nil && err == nil {
		err = match.ErrNoNamespace
	}
	if err != nil {
		return nil, err
	}
	made, err := stored.Once(namespaceKey{}, func() (any, error) { return celenv.NewNamespace(stored.JSON) })
	if err != nil {
		return nil, err
	}
	return made.(*celenv.Object), nil //nolint:forcetypeassert // it is what is made
}

// namespacesOf returns the namespaces of the cluster that asks; nil: nobody has them.
func namespacesOf(v *hook.View) hook.Objects {
	if v.Caller == nil {
		return nil
	}
	return v.Caller.Objects(Namespaces())
}
