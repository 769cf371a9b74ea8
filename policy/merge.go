// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/codec/jsonpatch"
	"github.com/admission-dispatcher/dispatcher/hook"
	policyschema "github.com/admission-dispatcher/dispatcher/policy/schema"
)

// unknownKind is the error of merging into an object of whose kind nothing is known.
type unknownKind struct {
	kind schema.GroupVersionKind
	err  error // why the cluster does not say; nil: it is not asked, or does not serve the kind
}

func (k *unknownKind) Error() string {
	text := fmt.Sprintf("Resource kind %s not found. There can be a delay between when CustomResourceDefinitions are created and when they are available.", k.kind)
	if k.err != nil {
		text += " The types of the cluster's kinds are not known: " + k.err.Error() + "."
	}
	return text
}

// Unwrap returns why the cluster does not say.
func (k *unknownKind) Unwrap() error { return k.err }

// typeOf returns the type of the objects of a kind: as the sources have it, or else the
// cluster that asks. The error is a *hook.CallError where too many wait for its API.
func typeOf(kind schema.GroupVersionKind, known *policyschema.Types, q *hook.Question) (policyschema.Type, error) {
	of, ok := known.Of(kind)
	if ok {
		return of, nil
	}
	var cluster hook.Kinds
	if q.Caller != nil {
		cluster = q.Caller.Kinds()
	}
	if cluster == nil {
		return of, &unknownKind{kind: kind}
	}
	types, err := q.Types(cluster, kind.GroupVersion())
	if shed, ok := errors.AsType[*hook.CallError](err); ok {
		return of, shed
	}
	if err != nil {
		return of, &unknownKind{kind, err}
	}
	if of, ok = types.Of(kind); !ok {
		return of, &unknownKind{kind: kind}
	}
	return of, nil
}

// mergeError is the error of a merge. It may quote the object.
type mergeError struct{ err error }

func (e *mergeError) Error() string { return "error applying patch: " + e.err.Error() }

func (e *mergeError) Unwrap() error { return e.err }

// kindOf is what an object of the review is, as the API server has converted it.
func kindOf(r *codec.Review) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: string(r.Kind.Group), Version: string(r.Kind.Version), Kind: string(r.Kind.Kind)}
}

// merge returns the operations by which an apply configuration becomes part of an object.
func merge(object, configuration []byte, of policyschema.Type) ([]byte, error) {
	var live, said map[string]any
	if err := utiljson.Unmarshal(object, &live); err != nil {
		return nil, &mergeError{err}
	}
	if err := utiljson.Unmarshal(configuration, &said); err != nil {
		return nil, &mergeError{err}
	}
	for _, key := range []string{"apiVersion", "kind"} { // which stay what they are
		delete(said, key)
		if is, ok := live[key]; ok {
			said[key] = is
		}
	}
	merged, err := of.Merge(live, said)
	if err != nil {
		return nil, &mergeError{err}
	}
	return jsonpatch.Diff(nil, live, merged)
}
