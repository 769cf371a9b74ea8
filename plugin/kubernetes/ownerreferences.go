// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// OwnerReferencesPermissionEnforcement denies changes of an object's owners to those who may
// not delete the object, which a wrong owner does, and references that keep their owner from
// being deleted to those who may not set the owner's finalizers.
func OwnerReferencesPermissionEnforcement() plugin.Plugin {
	rule := plugin.Rule("*", "*", []string{"*/*"}, "CREATE", "UPDATE")
	p := plugin.New("OwnerReferencesPermissionEnforcement", []admissionregistrationv1.RuleWithOperations{rule}, func(c *ownerConfiguration) (any, field.ErrorList) {
		kinds, errs := c.kinds()
		return &ownerReferences{kinds}, errs
	})
	p.Authorizes = true
	return p
}

type ownerReferences struct{ kinds ownerKinds }

func (o *ownerReferences) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	operation, r := a.Operation(), a.Resource()
	switch {
	case operation != admissionv1.Create && operation != admissionv1.Update,
		// Old kubelets spoil the owners there, and the API server keeps those that are stored.
		r.Group == "" && r.Resource == "pods" && a.Subresource() == "status":
		return plugin.Answer{}, nil
	}
	now, err := ownersOf(a.Object())
	if err != nil {
		return plugin.Answer{}, err
	}
	before, err := ownersOf(a.OldObject())
	if err != nil || apiequality.Semantic.DeepEqual(now, before) {
		return plugin.Answer{}, err
	}
	// Whoever creates an object could have left it.
	if operation == admissionv1.Update {
		answer, err := mayUser(a, &authorizationv1.ResourceAttributes{
			Verb: "delete", Namespace: a.Namespace(), Group: r.Group, Version: r.Version, Resource: r.Resource, Subresource: a.Subresource(), Name: a.Name(),
		})
		if err != nil {
			return plugin.Answer{}, err
		}
		if !answer.allowed {
			return a.Forbid("cannot set an ownerRef on a resource you can't delete: %v, %v", answer.reason, answer.err), nil
		}
	}
	return o.blocking(a, newlyBlocking(now, before))
}

// blocking decides about references that keep their owners from being deleted.
func (o *ownerReferences) blocking(a *plugin.Attributes, refs []metav1.OwnerReference) (plugin.Answer, error) {
	if len(refs) == 0 {
		return plugin.Answer{}, nil
	}
	// Most who set such references may set all finalizers: one question for all of them. That
	// it has no answer does not matter if the others have one.
	if all, err := mayUser(a, &authorizationv1.ResourceAttributes{
		Verb: "update", Group: "*", Version: "*", Resource: "*", Subresource: "finalizers", Name: "*",
	}); err == nil && all.allowed {
		return plugin.Answer{}, nil
	}
	if len(refs) > maxBlocking {
		return a.Forbid("cannot set blockOwnerDeletion for more than %d owners at once", maxBlocking), nil
	}
	for i := range refs {
		owner, err := o.kinds.resource(&refs[i])
		if err != nil {
			return a.Forbid("cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion %s Kind %s: %v",
				refs[i].APIVersion, refs[i].Kind, err), nil
		}
		finalizers := &authorizationv1.ResourceAttributes{
			Verb: "update", Group: owner.Group, Version: owner.Version, Resource: owner.Resource, Subresource: "finalizers", Name: refs[i].Name,
		}
		if owner.namespaced { // then it is where the object is
			finalizers.Namespace = a.Namespace()
		}
		answer, err := mayUser(a, finalizers)
		if err != nil {
			return plugin.Answer{}, err
		}
		if !answer.allowed {
			return a.Forbid("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: %v, %v",
				answer.reason, answer.err), nil
		}
	}
	return plugin.Answer{}, nil
}

// maxBlocking bounds what a request may ask the authorizer: one question for each owner.
const maxBlocking = 64

func ownersOf(o plugin.Object) ([]metav1.OwnerReference, error) {
	metadata, err := o.Metadata()
	if metadata == nil {
		return nil, err
	}
	return metadata.OwnerReferences, nil
}

// newlyBlocking returns the references that keep their owner from being deleted and did not
// before. An owner is known by its uid.
func newlyBlocking(now, before []metav1.OwnerReference) []metav1.OwnerReference {
	known := map[types.UID]bool{}
	for i := range before {
		known[before[i].UID] = isBlocking(&before[i])
	}
	return slices.DeleteFunc(slices.Clone(now), func(ref metav1.OwnerReference) bool { return !isBlocking(&ref) || known[ref.UID] })
}

func isBlocking(ref *metav1.OwnerReference) bool {
	return ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}
