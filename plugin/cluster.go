// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"reflect"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/quantity"
)

// Get returns an object that the cluster stores, of a resource that Plugin.Lists has, as a T;
// nil: there is none. The namespace of one that is in none is "". It is decoded once for all
// admissions: nobody may write to it. An error is no answer of the plugin, which returns it
// as it is.
func Get[T any](a *Attributes, resource schema.GroupVersionResource, namespace, name string) (*T, error) {
	objects, err := a.objects(resource)
	if err != nil {
		return nil, err
	}
	stored, err := a.question.Stored(objects, namespace, name)
	if err != nil || stored == nil {
		return nil, err
	}
	return storedAs[T](stored)
}

// List returns the objects in a namespace, or with "" in all, in the order of their
// namespaces and names; else it is Get.
func List[T any](a *Attributes, resource schema.GroupVersionResource, namespace string) ([]*T, error) {
	objects, err := a.objects(resource)
	if err != nil {
		return nil, err
	}
	stored, err := a.question.StoredList(objects, namespace)
	if err != nil {
		return nil, err
	}
	list := make([]*T, len(stored))
	for i, s := range stored {
		if list[i], err = storedAs[T](s); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// objects returns the source of a resource's objects.
func (a *Attributes) objects(resource schema.GroupVersionResource) (hook.Objects, error) {
	if a.question.Caller == nil {
		return nil, errNoCaller
	}
	objects := a.question.Caller.Objects(resource)
	if objects == nil {
		return nil, fmt.Errorf("the cluster has no source of %s", resource.GroupResource())
	}
	return objects, nil
}

// storedKey names what a stored object is decoded into.
type storedKey struct{ into reflect.Type }

func storedAs[T any](s *hook.Stored) (*T, error) {
	made, err := s.Once(storedKey{reflect.TypeFor[T]()}, func() (any, error) {
		if !quantity.AreDecodable(s.JSON, reflect.TypeFor[T]()) {
			return nil, unbounded(reflect.TypeFor[T]())
		}
		into := new(T)
		if err := json.UnmarshalCaseSensitivePreserveInts(s.JSON, into); err != nil {
			return nil, undecodable(err, reflect.TypeFor[T]())
		}
		return into, nil
	})
	if err != nil {
		return nil, err
	}
	return made.(*T), nil
}

// Authorize asks the authorizer of the cluster whether it would let the user of access do
// that; of a plugin whose Authorizes is set only. An answer of late may serve.
func (a *Attributes) Authorize(access *authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	return a.question.Authorize(access)
}
