// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/policy"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// policyPair is a policy with one of its bindings. To clusters, bindings and paths it
// is what a webhook is, named policy/binding.
type policyPair struct {
	policy, binding manifest.Origin
	spec            pairSpec
	compiled        namespaceUser
	params          *policy.Params // nil: it has none
	merging         *merging       // nil: it validates
	entryOf         chain.Entry    // what only its kind has
	clusters        *binding       // by the binding's annotation; nil: all
}

// namespaceUser is a compiled policy of either kind.
type namespaceUser interface {
	Namespace() (celenv.NamespaceUse, *field.Path)
	Authorizes() (at *field.Path, expression string)
}

// policyKinds are the kinds of policies by their phases.
var policyKinds = [...]string{chain.Validating: "ValidatingAdmissionPolicy", chain.Mutating: "MutatingAdmissionPolicy"}

// pairSpec is what both kinds of policies, and their bindings, say alike.
type pairSpec struct {
	name, binding string
	phase         chain.Phase
	constraints   *admissionregistrationv1.MatchResources
	narrower      *admissionregistrationv1.MatchResources // nil: the binding has none
	failurePolicy *admissionregistrationv1.FailurePolicyType
	params        *admissionregistrationv1.ParamKind
	conditions    []admissionregistrationv1.MatchCondition
}

// compilePolicies adds an entry for each binding of each policy, by their names.
func (c *entries) compilePolicies(objects *manifest.Objects, compiler *policy.Compiler) {
	compiler.Begin()
	defer compiler.End()
	c.compileValidating(objects, compiler)
	c.compileMutating(objects, compiler)
}

func (c *entries) compileValidating(objects *manifest.Objects, compiler *policy.Compiler) {
	known := map[string]*manifest.Policy{}
	compiled := map[string]*policy.Policy{}
	for i := range objects.Policies {
		p := &objects.Policies[i]
		known[p.Name] = p
		errs := validatePolicy(&p.ValidatingAdmissionPolicy)
		made, bad := compiler.Compile(&p.Spec, field.NewPath("spec"))
		errs, compiled[p.Name] = append(errs, bad...), made
		if len(errs) > 0 {
			c.problem(p.Problems(errs)...)
			delete(compiled, p.Name)
			continue
		}
		for _, w := range compiler.Check(&p.Spec, c.kinds.all(), field.NewPath("spec")) {
			c.warn(p.Problem(w.At, w.Expression, w.Line()))
		}
	}
	for i := range objects.PolicyBindings {
		b := &objects.PolicyBindings[i]
		clusters, errs := validatePolicyBinding(&b.ValidatingAdmissionPolicyBinding)
		if len(errs) > 0 {
			c.problem(b.Problems(errs)...)
			continue
		}
		made := compiled[b.Spec.PolicyName]
		if made == nil { // an unknown one is linted
			continue
		}
		p := known[b.Spec.PolicyName]
		found := c.params.of(paramBinding{p.Origin, b.Origin, p.Spec.ParamKind, b.Spec.ParamRef, b.Annotations})
		c.pair(&policyPair{
			policy: p.Origin, binding: b.Origin, clusters: clusters, compiled: made, params: found,
			spec: pairSpec{p.Name, b.Name, chain.Validating, p.Spec.MatchConstraints, b.Spec.MatchResources, p.Spec.FailurePolicy, p.Spec.ParamKind, p.Spec.MatchConditions},
			entryOf: chain.Entry{
				Hook: policy.NewBinding(made, p.Name, b.Name, b.Spec.ValidationActions, found), Title: policy.Title(p.Name, b.Name), Audited: p.Name,
			},
		})
	}
}

func (c *entries) compileMutating(objects *manifest.Objects, compiler *policy.Compiler) {
	known := map[string]*manifest.MutatingPolicy{}
	compiled := map[string]*policy.Mutations{}
	for i := range objects.MutatingPolicies {
		p := &objects.MutatingPolicies[i]
		known[p.Name] = p
		errs := validateMutatingPolicy(&p.MutatingAdmissionPolicy)
		made, bad := compiler.CompileMutations(&p.Spec, field.NewPath("spec"))
		errs, compiled[p.Name] = append(errs, bad...), made
		if len(errs) > 0 {
			c.problem(p.Problems(errs)...)
			delete(compiled, p.Name)
		}
	}
	for i := range objects.MutatingPolicyBindings {
		b := &objects.MutatingPolicyBindings[i]
		clusters, errs := validateMutatingPolicyBinding(&b.MutatingAdmissionPolicyBinding)
		if len(errs) > 0 {
			c.problem(b.Problems(errs)...)
			continue
		}
		made := compiled[b.Spec.PolicyName]
		if made == nil {
			continue
		}
		p := known[b.Spec.PolicyName]
		found := c.params.of(paramBinding{p.Origin, b.Origin, p.Spec.ParamKind, b.Spec.ParamRef, b.Annotations})
		into := &merging{}
		if merges(&p.Spec) {
			into = mergingOf(p.Spec.MatchConstraints.ResourceRules, c.kinds.all())
		}
		c.pair(&policyPair{
			policy: p.Origin, binding: b.Origin, clusters: clusters, compiled: made, params: found, merging: into,
			spec: pairSpec{p.Name, b.Name, chain.Mutating, p.Spec.MatchConstraints, b.Spec.MatchResources, p.Spec.FailurePolicy, p.Spec.ParamKind, p.Spec.MatchConditions},
			entryOf: chain.Entry{
				Hook: policy.NewMutationBinding(made, p.Name, b.Name, found, into.types), Title: policy.MutationTitle(p.Name, b.Name), Audited: p.Name,
				Reinvocation: p.Spec.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy,
			},
		})
	}
}

// matched are the conditions that the matcher evaluates: none where they may look at params,
// and come after what is wrong with those.
func matched(params *admissionregistrationv1.ParamKind, conditions []admissionregistrationv1.MatchCondition) []admissionregistrationv1.MatchCondition {
	if params != nil {
		return nil
	}
	return conditions
}

// pair adds the entry of a pair: what a webhook's configuration would say of it.
func (c *entries) pair(p *policyPair) {
	constraints := p.spec.constraints
	rules := make([]admissionregistrationv1.RuleWithOperations, len(constraints.ResourceRules))
	for i := range constraints.ResourceRules {
		rules[i] = constraints.ResourceRules[i].RuleWithOperations
	}
	none, seconds := admissionregistrationv1.SideEffectClassNone, int32(chain.MaxTimeout.Seconds())
	c.add(&entry{
		configuration: &manifest.Configuration{Origin: p.policy, Phase: p.spec.phase, Meta: metav1.ObjectMeta{Name: p.spec.name}},
		spec: &admissionregistrationv1.MutatingWebhook{
			Name:              p.spec.binding,
			Rules:             rules,
			MatchPolicy:       constraints.MatchPolicy,
			FailurePolicy:     p.spec.failurePolicy,
			NamespaceSelector: constraints.NamespaceSelector,
			ObjectSelector:    constraints.ObjectSelector,
			MatchConditions:   matched(p.spec.params, p.spec.conditions),
			SideEffects:       &none,
			TimeoutSeconds:    &seconds,
		},
		path:   field.NewPath("spec", "matchConstraints"),
		policy: p,
	})
}

// restrict adds what only a policy and its binding say.
func (p *policyPair) restrict(spec *match.Spec) {
	constraints := p.spec.constraints
	spec.Names, spec.Exclude, spec.ConditionsAnswer = namesOf(constraints.ResourceRules), constraints.ExcludeResourceRules, true
	m := p.spec.narrower
	if m == nil {
		return
	}
	spec.Narrower = &match.Spec{
		Names:             namesOf(m.ResourceRules),
		MatchPolicy:       *m.MatchPolicy,
		NamespaceSelector: m.NamespaceSelector,
		ObjectSelector:    m.ObjectSelector,
		Exclude:           m.ExcludeResourceRules,
	}
	for i := range m.ResourceRules {
		spec.Narrower.Rules = append(spec.Narrower.Rules, m.ResourceRules[i].RuleWithOperations)
	}
}

// namesOf returns the resourceNames of each rule; nil if none has any.
func namesOf(rules []admissionregistrationv1.NamedRuleWithOperations) [][]string {
	if !slices.ContainsFunc(rules, func(r admissionregistrationv1.NamedRuleWithOperations) bool { return len(r.ResourceNames) > 0 }) {
		return nil
	}
	names := make([][]string, len(rules))
	for i := range rules {
		names[i] = rules[i].ResourceNames
	}
	return names
}

// entry returns the pair under one dispatch.
func (p *policyPair) entry(e *entry, d dispatch) *chain.Entry {
	w := made{Entry: new(chain.Entry)}
	*w.Entry = p.entryOf
	w.ID = hook.ID{Configuration: p.spec.name, Name: p.spec.binding}
	w.Noun, w.DenialPrefix = "policy", w.Title+" denied request"
	w.PathID, w.Matcher, w.Spec = e.pathID, e.matcher, p.specOf(e)
	w.FailurePolicy, w.SideEffects, w.Timeout = failurePolicyOf(*e.spec.FailurePolicy), chain.SideEffectsNone, e.timeout()
	w.Stage, w.Needs = chain.StagePolicy, p.needs()
	for i, value := range d {
		if f := &bindingFields[i]; value != nil && f.policies {
			f.apply(&w, value)
		}
	}
	return w.Entry
}

// specOf is what the entry wants, with the conditions that its Hook evaluates.
func (p *policyPair) specOf(e *entry) match.Spec {
	spec := e.matchSpec()
	spec.MatchConditions = p.spec.conditions
	return spec
}

// clusterSelectors returns the selectors of clusters that bindings of policies have.
func clusterSelectors(entries [2][]*entry) (list []*binding) {
	for _, e := range slices.Concat(entries[chain.Validating], entries[chain.Mutating]) {
		if e.policy != nil && e.policy.clusters != nil {
			list = append(list, e.policy.clusters)
		}
	}
	return list
}

// readClusterSelector returns what the annotation of a binding selects; nil: it has none.
func readClusterSelector(meta *metav1.ObjectMeta) (*binding, *field.Error) {
	text, ok := meta.Annotations[manifest.ClusterSelectorAnnotation]
	if !ok {
		return nil, nil
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, field.Invalid(clusterSelectorPath(), text, err.Error())
	}
	return &binding{clusters: selector}, nil
}

func clusterSelectorPath() *field.Path {
	return field.NewPath("metadata", "annotations").Key(manifest.ClusterSelectorAnnotation)
}

// rules is what the field with the rules is called.
func (e *entry) rules() string {
	if e.policy != nil {
		return "resourceRules"
	}
	return "rules"
}

// selecting is the object whose namespaceSelector goes by labels, and selectorPath its
// path: a policy's, or else its binding's.
func (e *entry) selecting() manifest.Origin {
	if e.selectsByBinding() {
		return e.policy.binding
	}
	return e.configuration.Origin
}

func (e *entry) selectorPath() *field.Path {
	if e.selectsByBinding() {
		return field.NewPath("spec", "matchResources", "namespaceSelector")
	}
	return e.path.Child("namespaceSelector")
}

func (e *entry) selectsByBinding() bool {
	s := e.spec.NamespaceSelector
	return e.policy != nil && len(s.MatchLabels)+len(s.MatchExpressions) == 0
}

// policies warns about policies and bindings that do nothing.
func (l lint) policies(o *manifest.Objects, every []*entry, clusters bool) {
	validating, mutating := twoSides{kind: policyKinds[chain.Validating]}, twoSides{kind: policyKinds[chain.Mutating]}
	for i := range o.Policies {
		validating.policies = append(validating.policies, side{o.Policies[i].Origin, o.Policies[i].Name})
	}
	for i := range o.PolicyBindings {
		validating.bindings = append(validating.bindings, side{o.PolicyBindings[i].Origin, o.PolicyBindings[i].Spec.PolicyName})
	}
	for i := range o.MutatingPolicies {
		mutating.policies = append(mutating.policies, side{o.MutatingPolicies[i].Origin, o.MutatingPolicies[i].Name})
	}
	for i := range o.MutatingPolicyBindings {
		mutating.bindings = append(mutating.bindings, side{o.MutatingPolicyBindings[i].Origin, o.MutatingPolicyBindings[i].Spec.PolicyName})
	}
	l.unpaired(validating)
	l.unpaired(mutating)
	for _, e := range every {
		if e.policy != nil && e.policy.clusters != nil && e.policy.clusters.selected == 0 && clusters {
			l.warn(e.policy.binding.Problem(clusterSelectorPath(), fmt.Sprint(e.policy.clusters.clusters), "selects no Cluster"))
		}
	}
}

// twoSides are the policies of a kind and their bindings, each with the name of the policy.
type twoSides struct {
	kind               string
	policies, bindings []side
}

type side struct {
	manifest.Origin
	policy string
}

func (l lint) unpaired(of twoSides) {
	for _, b := range of.bindings {
		if !slices.ContainsFunc(of.policies, func(p side) bool { return p.policy == b.policy }) {
			l.warn(b.Problem(field.NewPath("spec", "policyName"), b.policy, "there is no such "+of.kind+": the binding does nothing"))
		}
	}
	for _, p := range of.policies {
		if !slices.ContainsFunc(of.bindings, func(b side) bool { return b.policy == p.policy }) {
			l.warn(p.Problem(nil, "", "no "+of.kind+"Binding names it: the policy does nothing"))
		}
	}
}
