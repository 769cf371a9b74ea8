// SPDX-License-Identifier: Apache-2.0

package policy

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/internal/celenv"
)

// Mutations are what a MutatingAdmissionPolicy does, compiled: everything but which
// requests it is for. Policies that say the same are one. They are frozen, and safe for
// concurrent use.
type Mutations struct {
	common
	list []mutation
}

// mutation is one entry of mutations.
type mutation struct {
	text       string
	expression *celenv.Expression
	// configuration: it comes to a part of the object, and not to operations.
	configuration bool
}

// CompileMutations compiles the expressions of a policy that is valid but for them, as
// Compile does.
func (c *Compiler) CompileMutations(spec *admissionregistrationv1.MutatingAdmissionPolicySpec, at *field.Path) (*Mutations, field.ErrorList) {
	read := admissionregistrationv1.MutatingAdmissionPolicySpec{
		FailurePolicy: spec.FailurePolicy, MatchConditions: spec.MatchConditions, Variables: spec.Variables, Mutations: spec.Mutations,
		ParamKind: anyKind(spec.ParamKind),
	}
	return kept(c, sumOf(read), func(sum string) (*Mutations, field.ErrorList) { return c.compileMutations(spec, sum, at) })
}

func (c *Compiler) compileMutations(spec *admissionregistrationv1.MutatingAdmissionPolicySpec, sum string, at *field.Path) (*Mutations, field.ErrorList) {
	b := c.begin(sum, spec.FailurePolicy, spec.ParamKind, spec.MatchConditions, spec.Variables, at)
	m := &Mutations{}
	for i := range spec.Mutations {
		said, at := &spec.Mutations[i], at.Child("mutations").Index(i)
		if patch := said.JSONPatch; patch != nil {
			m.list = append(m.list, mutation{
				text:       patch.Expression,
				expression: b.expression(at.Child("jsonPatch", "expression"), patch.Expression, celenv.Operations),
			})
		}
		if apply := said.ApplyConfiguration; apply != nil {
			m.list = append(m.list, mutation{
				text: apply.Expression, configuration: true,
				expression: b.expression(at.Child("applyConfiguration", "expression"), apply.Expression, celenv.Configuration),
			})
		}
	}
	var errs field.ErrorList
	m.common, errs = b.end(at)
	return m, errs
}
