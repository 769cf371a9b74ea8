// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"bytes"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

var _ cel.Activation = (*Evaluation)(nil)

// ResolveName returns the value of a variable of the environment.
func (e *Evaluation) ResolveName(name string) (any, bool) {
	switch name {
	case plugin.VariableVarName:
		return variablesValue{e}, true
	case plugin.RequestVarName:
		return e.variables.matchedRequest(), true
	case plugin.ParamsVarName:
		return e.given.Params.val(), true
	case plugin.NamespaceVarName:
		return e.given.Namespace.val(), true
	case plugin.AuthorizerVarName, plugin.RequestResourceAuthorizerVarName:
		if e.inside >= 0 {
			e.known[e.inside].asked = true
		}
		if e.silent {
			return nil, false
		}
	}
	value, ok := e.variables.ResolveName(name)
	if object, typed := value.(*typedMap); typed && e.plain {
		return e.asDecoded(object), ok
	}
	return value, ok
}

// asDecoded is an object as that of a custom resource. It is made once: a loop may ask for it
// in each turn.
func (e *Evaluation) asDecoded(object *typedMap) ref.Val {
	if made := e.decoded[object]; made != nil {
		return made
	}
	made := types.DefaultTypeAdapter.NativeToValue(object.Value())
	if e.decoded == nil {
		e.decoded = map[*typedMap]ref.Val{}
	}
	e.decoded[object] = made
	return made
}

// Plain has expressions see objects as those of custom resources, be they of a built-in
// kind or not: so does kube-apiserver 1.37 where a policy that mutates has no
// matchConditions (k8s.io/apiserver/pkg/admission/conversion.go, LazyObject).
func (e *Evaluation) Plain() { e.plain = true }

// Parent returns nil: there is no enclosing scope.
func (e *Evaluation) Parent() cel.Activation { return nil }

// matchedRequest is the request as validations see it: where the API server has
// converted what the user sent, with the resource as converted. matchConditions see
// the resource as sent.
func (v *Variables) matchedRequest() ref.Val {
	return once(&v.matched, func() ref.Val {
		asIs, asSent := &v.Review.Resource, &v.Review.RequestResource
		if bytes.Equal(asIs.Group, asSent.Group) && bytes.Equal(asIs.Version, asSent.Version) && bytes.Equal(asIs.Resource, asSent.Resource) {
			return v.requestValue()
		}
		request := requestOf(v.Review)
		var c copier
		request.Resource = c.resource(*asIs)
		return common.SchemalessTypedToVal(request)
	})
}

// conditionNames are the names of a condition: those of the review, and params.
type conditionNames struct{ of *Evaluation }

// ResolveName implements cel.Activation.
func (n conditionNames) ResolveName(name string) (any, bool) {
	if name == plugin.ParamsVarName {
		return n.of.given.Params.val(), true
	}
	return n.of.variables.ResolveName(name)
}

// Parent implements cel.Activation: there is no enclosing scope.
func (n conditionNames) Parent() cel.Activation { return nil }
