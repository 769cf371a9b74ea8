// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	webhooktesting "k8s.io/apiserver/pkg/admission/plugin/webhook/testing"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Admission is one request as it reaches the admission chain. Objects carry their
// own apiVersion and kind.
type Admission struct {
	Operation   admission.Operation
	Kind        schema.GroupVersionKind
	Resource    schema.GroupVersionResource
	Subresource string
	Namespace   string
	Name        string
	Object      runtime.Object // nil on DELETE
	OldObject   runtime.Object // nil on CREATE and CONNECT
	Options     runtime.Object
	DryRun      bool
	User        user.Info
}

// Attributes returns a's attributes with copies of the objects, which plugins
// change in place, and which remember their audit annotations.
func (a *Admission) Attributes() *webhooktesting.FakeAttributes {
	return &webhooktesting.FakeAttributes{Attributes: admission.NewAttributesRecord(
		duplicate(a.Object), duplicate(a.OldObject), a.Kind, a.Namespace, a.Name, a.Resource,
		a.Subresource, a.Operation, a.Options, a.DryRun, a.User)}
}

func duplicate(o runtime.Object) runtime.Object {
	if o == nil {
		return nil
	}
	return o.DeepCopyObject()
}
