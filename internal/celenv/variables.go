// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
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
	object, oldObject, request, cluster ref.Val   // nil: not asked for yet
	deadline                            time.Time // of the evaluation under way; zero: none
	interrupted                         bool      // it ended a conversion
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

// Forget gives up the converted objects, which may be many times as large as their
// text, and are converted again if a condition asks for them once more. What
// conditions came to is kept.
func (v *Variables) Forget() { v.object, v.oldObject = nil, nil }

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
		return once(&v.object, func() ref.Val { return v.objectValue(v.in.Object) }), true
	case plugin.OldObjectVarName:
		return once(&v.oldObject, func() ref.Val { return v.objectValue(v.in.Review.OldObject.Raw) }), true
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

// objectValue decodes an object, until the deadline.
func (v *Variables) objectValue(raw []byte) ref.Val {
	if raw == nil {
		return types.NullValue
	}
	c := converter{deadline: v.deadline, piece: usualPiece}
	object, err := c.value(raw)
	if err != nil {
		v.interrupted = errors.Is(err, ErrInterrupted)
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
