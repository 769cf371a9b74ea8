// SPDX-License-Identifier: Apache-2.0

// Package policy decides Validating- and MutatingAdmissionPolicies: it compiles one,
// evaluates it over a review, and answers for each of its bindings as kube-apiserver does.
package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	policyschema "github.com/admission-dispatcher/dispatcher/policy/schema"
)

// Policy is what a ValidatingAdmissionPolicy decides, compiled: everything but which
// requests it is for. It has no name: policies that say the same are one. It is frozen,
// and safe for concurrent use.
type Policy struct {
	common
	validations []validation
	annotations []annotation
	messages    int // how many messageExpressions there are
}

// common is what policies that validate and policies that mutate have in common.
type common struct {
	sum        string
	ignore     bool // failurePolicy: an expression without a result is skipped
	scope      *celenv.Scope
	conditions []*celenv.Condition
	objects    bool                // an expression looks into the objects
	namespace  celenv.NamespaceUse // by the expression that looks at most of it

	namespaceAt *field.Path
	authorizes  asking
}

// asking is the first expression that may ask the cluster's authorizer.
type asking struct {
	at   *field.Path // below the policy's spec; nil: there is none
	text string
}

// Authorizes returns the first expression that may ask the cluster's authorizer, and its
// path; nil: there is none.
func (c *common) Authorizes() (at *field.Path, expression string) {
	return c.authorizes.at, c.authorizes.text
}

// Namespace says what the expressions look at of namespaceObject, and which of them looks
// at most of it.
func (c *common) Namespace() (celenv.NamespaceUse, *field.Path) { return c.namespace, c.namespaceAt }

// validation is one entry of validations.
type validation struct {
	admissionregistrationv1.Validation
	expression *celenv.Expression
	message    *celenv.Expression // nil: there is none
}

// annotation is one entry of auditAnnotations.
type annotation struct {
	key, text string
	value     *celenv.Expression
}

// Compiler compiles policies. It keeps what it has compiled for the next load: to compile
// an expression takes about a millisecond. It is not safe for concurrent use.
type Compiler struct {
	cel      *celenv.Compiler
	now      map[string]any // *Policy or *Mutations of this load, by sum
	before   map[string]any // of the one before
	compiled int

	checker *celenv.Checker // of this load, against checked
	checked *policyschema.Types
}

// NewCompiler returns a Compiler whose expressions cel compiles.
func NewCompiler(cel *celenv.Compiler) *Compiler {
	return &Compiler{cel: cel, now: map[string]any{}}
}

// Begin begins a load: what this one and the one before it do not use is forgotten.
func (c *Compiler) Begin() {
	c.now, c.before = map[string]any{}, c.now
}

// End ends a load: what only a load needs is forgotten, which are megabytes for each kind that
// expressions were checked against.
func (c *Compiler) End() { c.checker = nil }

// Compiled returns how many policies have been compiled so far.
func (c *Compiler) Compiled() int { return c.compiled }

// Compile compiles the expressions of a policy that is valid but for them. Every
// expression that does not compile is an error, with its path below at.
func (c *Compiler) Compile(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec, at *field.Path) (*Policy, field.ErrorList) {
	read := admissionregistrationv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: spec.FailurePolicy, MatchConditions: spec.MatchConditions, Variables: spec.Variables,
		Validations: spec.Validations, AuditAnnotations: spec.AuditAnnotations, ParamKind: anyKind(spec.ParamKind),
	}
	return kept(c, sumOf(read), func(sum string) (*Policy, field.ErrorList) { return c.compile(spec, sum, at) })
}

// kept returns what is compiled already, or else compiles it.
func kept[P any](c *Compiler, sum string, compile func(sum string) (*P, field.ErrorList)) (*P, field.ErrorList) {
	if p, ok := c.now[sum].(*P); ok {
		return p, nil
	}
	p, ok := c.before[sum].(*P)
	if !ok {
		c.compiled++
		var errs field.ErrorList
		if p, errs = compile(sum); len(errs) > 0 {
			return nil, errs
		}
	}
	c.now[sum] = p
	return p, nil
}

// anyKind is not nil where params are declared, of whatever kind: expressions may look at
// them.
func anyKind(of *admissionregistrationv1.ParamKind) *admissionregistrationv1.ParamKind {
	if of == nil {
		return nil
	}
	return &admissionregistrationv1.ParamKind{}
}

// sumOf is over all that is compiled.
func sumOf(read any) string {
	text, _ := json.Marshal(read) // plain data always has a text
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func (c *Compiler) compile(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec, sum string, at *field.Path) (*Policy, field.ErrorList) {
	b := c.begin(sum, spec.FailurePolicy, spec.ParamKind, spec.MatchConditions, spec.Variables, at)
	p := &Policy{}
	for i, v := range spec.Validations {
		at := at.Child("validations").Index(i)
		compiled := validation{Validation: v, expression: b.expression(at.Child("expression"), v.Expression, celenv.Bool)}
		if v.MessageExpression != "" {
			compiled.message = b.expression(at.Child("messageExpression"), v.MessageExpression, celenv.Text)
			p.messages++
		}
		p.validations = append(p.validations, compiled)
	}
	for i, a := range spec.AuditAnnotations {
		at := at.Child("auditAnnotations").Index(i).Child("valueExpression")
		p.annotations = append(p.annotations, annotation{a.Key, a.ValueExpression, b.expression(at, a.ValueExpression, celenv.TextOrNull)})
	}
	var errs field.ErrorList
	p.common, errs = b.end(at)
	return p, errs
}

// builder compiles what policies have in common, and collects what is wrong.
type builder struct {
	common
	errs field.ErrorList
}

// begin compiles the conditions and the variables.
func (c *Compiler) begin(sum string, failurePolicy *admissionregistrationv1.FailurePolicyType, params *admissionregistrationv1.ParamKind,
	conditions []admissionregistrationv1.MatchCondition, variables []admissionregistrationv1.Variable, at *field.Path,
) *builder {
	b := &builder{common: common{
		sum:    sum,
		ignore: failurePolicy != nil && *failurePolicy == admissionregistrationv1.Ignore,
		scope:  c.cel.NewScope(celenv.Declarations{Variables: len(variables) > 0, Params: params != nil}),
	}}
	condition := c.cel.Compile
	if params != nil {
		condition = c.cel.CompileWithParams
	}
	for i, m := range conditions {
		if blank(m.Expression) {
			continue
		}
		compiled, err := condition(m.Expression)
		at := at.Child("matchConditions").Index(i).Child("expression")
		b.problem(at, m.Expression, err)
		b.asks(at, m.Expression, compiled != nil && compiled.Authorizes())
		b.conditions = append(b.conditions, compiled)
	}
	for i, v := range variables {
		if blank(v.Expression) {
			continue
		}
		at := at.Child("variables").Index(i).Child("expression")
		b.problem(at, v.Expression, b.scope.Declare(v.Name, v.Expression))
		b.asks(at, v.Expression, b.scope.Authorizes())
	}
	return b
}

// end returns what all compiled, if nothing is wrong.
func (b *builder) end(at *field.Path) (common, field.ErrorList) {
	if len(b.errs) == 0 {
		b.objects = b.objects || b.scope.ReadsObjects()
		b.looks(at.Child("variables"), b.scope.Namespace())
	}
	return b.common, b.errs
}

func (b *builder) expression(at *field.Path, text string, result celenv.Result) *celenv.Expression {
	if blank(text) {
		return nil
	}
	x, err := b.scope.Compile(text, result)
	b.problem(at, text, err)
	if x != nil {
		b.objects = b.objects || x.ReadsObjects()
		b.looks(at, x.Namespace())
		b.asks(at, text, x.Authorizes())
	}
	return x
}

func (b *builder) asks(at *field.Path, text string, authorizer bool) {
	if authorizer && b.authorizes.at == nil {
		b.authorizes = asking{at, text}
	}
}

// looks notes what is looked at of namespaceObject, and where.
func (b *builder) looks(at *field.Path, use celenv.NamespaceUse) {
	if use > b.namespace {
		b.namespace, b.namespaceAt = use, at
	}
}

// blank reports whether there is no expression, which whoever validates the rest refuses.
func blank(text string) bool { return strings.TrimSpace(text) == "" }

func (b *builder) problem(at *field.Path, text string, err error) {
	if err != nil {
		b.errs = append(b.errs, field.Invalid(at, text, withoutPicture(err.Error())))
	}
}

// withoutPicture drops the lines in which CEL draws the expression.
func withoutPicture(message string) string {
	var kept []string
	for line := range strings.Lines(message) {
		if !strings.HasPrefix(line, " | ") {
			kept = append(kept, strings.TrimSpace(line))
		}
	}
	return strings.Join(kept, "; ")
}
