// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// Input is what Variables are made of. It borrows the Review.
type Input struct {
	Review        *codec.Review
	Object        []byte // JSON; nil is null
	ClusterName   string
	ClusterLabels map[string]string
}

// Variables are what conditions see of one review. A variable is converted when
// the first condition asks for it, and kept for all others: most conditions look
// at the request only, and an object may have 3 MiB. Variables borrow the Review
// and are used by one goroutine.
type Variables struct {
	in                                  Input
	object, oldObject, request, cluster ref.Val // nil: not asked for yet
	// results are of the conditions evaluated so far.
	results map[*Condition]result
}

var _ cel.Activation = (*Variables)(nil)

// NewVariables returns the variables of a review; nothing is converted yet.
func NewVariables(in Input) *Variables { return &Variables{in: in} }

// SetObject replaces the object, borrowed from now on; what the other variables
// were converted to stays.
func (v *Variables) SetObject(raw []byte) {
	v.in.Object, v.object = raw, nil
	clear(v.results)
}

// keep remembers what a condition came to.
func (v *Variables) keep(c *Condition, r result) {
	if v.results == nil {
		v.results = map[*Condition]result{}
	}
	v.results[c] = r
}

// ResolveName returns the value of a variable. One that cannot be converted is an
// error to every expression that mentions it.
func (v *Variables) ResolveName(name string) (any, bool) {
	switch name {
	case plugin.ObjectVarName:
		return once(&v.object, func() ref.Val { return objectValue(v.in.Object) }), true
	case plugin.OldObjectVarName:
		return once(&v.oldObject, func() ref.Val { return objectValue(v.in.Review.OldObject.Raw) }), true
	case plugin.RequestVarName:
		return once(&v.request, func() ref.Val { return common.SchemalessTypedToVal(requestOf(v.in.Review)) }), true
	case plugin.NamespaceVarName:
		return types.NullValue, true // declared, and null, in matchConditions of kube-apiserver too
	case clusterVariable:
		return once(&v.cluster, v.clusterValue), true
	}
	return nil, false
}

// Parent returns nil: there is no enclosing scope.
func (v *Variables) Parent() cel.Activation { return nil }

func once(kept *ref.Val, convert func() ref.Val) ref.Val {
	if *kept == nil {
		*kept = convert()
	}
	return *kept
}

// objectValue decodes an object the way apimachinery's unstructured objects are:
// whole numbers as int64.
func objectValue(raw []byte) ref.Val {
	if raw == nil {
		return types.NullValue
	}
	var object map[string]any
	if err := utiljson.Unmarshal(raw, &object); err != nil {
		return types.WrapErr(fmt.Errorf("failed to prepare the object for evaluation: %w", err))
	}
	return types.DefaultTypeAdapter.NativeToValue(object)
}

func (v *Variables) clusterValue() ref.Val {
	labels := v.in.ClusterLabels
	if labels == nil {
		labels = map[string]string{}
	}
	return types.DefaultTypeAdapter.NativeToValue(map[string]any{"name": v.in.ClusterName, "labels": labels})
}
