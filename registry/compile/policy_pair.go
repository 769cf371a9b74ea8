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
	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/policy"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// policyPair is a policy with one of its bindings. To clusters, bindings and paths it
// is what a webhook is, named policy/binding.
type policyPair struct {
	policy   *manifest.Policy
	binding  *manifest.PolicyBinding
	compiled *policy.Policy
	params   *policy.Params // nil: it has none
	hook     *policy.Binding
	clusters *binding // by the binding's annotation; nil: all
}

// compilePolicies adds an entry for each binding of each policy, by their names.
func (c *entries) compilePolicies(objects *manifest.Objects, compiler *policy.Compiler) {
	compiler.Begin()
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
			policy: p, binding: b, clusters: clusters, compiled: made, params: found,
			hook: policy.NewBinding(made, b.Spec.PolicyName, b.Name, b.Spec.ValidationActions, found),
		})
	}
}

// pair adds the entry of a pair: what a webhook's configuration would say of it.
func (c *entries) pair(p *policyPair) {
	constraints := p.policy.Spec.MatchConstraints
	rules := make([]admissionregistrationv1.RuleWithOperations, len(constraints.ResourceRules))
	for i := range constraints.ResourceRules {
		rules[i] = constraints.ResourceRules[i].RuleWithOperations
	}
	conditions := p.policy.Spec.MatchConditions
	if p.policy.Spec.ParamKind != nil { // they may look at params, and come after what is wrong with those
		conditions = nil
	}
	none, seconds := admissionregistrationv1.SideEffectClassNone, int32(chain.MaxTimeout.Seconds())
	c.add(&entry{
		configuration: &manifest.Configuration{Origin: p.policy.Origin, Phase: chain.Validating, Meta: metav1.ObjectMeta{Name: p.policy.Name}},
		spec: &admissionregistrationv1.MutatingWebhook{
			Name:              p.binding.Name,
			Rules:             rules,
			MatchPolicy:       constraints.MatchPolicy,
			FailurePolicy:     p.policy.Spec.FailurePolicy,
			NamespaceSelector: constraints.NamespaceSelector,
			ObjectSelector:    constraints.ObjectSelector,
			MatchConditions:   conditions,
			SideEffects:       &none,
			TimeoutSeconds:    &seconds,
		},
		path:   field.NewPath("spec", "matchConstraints"),
		policy: p,
	})
}

// spec is what the entry wants, with the conditions that its Hook evaluates.
func (p *policyPair) spec(e *entry) match.Spec {
	spec := e.matchSpec()
	spec.MatchConditions = p.policy.Spec.MatchConditions
	return spec
}

// restrict adds what only a policy and its binding say.
func (p *policyPair) restrict(spec *match.Spec) {
	constraints := p.policy.Spec.MatchConstraints
	spec.Names, spec.Exclude, spec.ConditionsAnswer = namesOf(constraints.ResourceRules), constraints.ExcludeResourceRules, true
	m := p.binding.Spec.MatchResources
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
	title := policy.Title(p.policy.Name, p.binding.Name)
	w := made{Entry: &chain.Entry{
		ID:            hook.ID{Configuration: p.policy.Name, Name: p.binding.Name},
		Hook:          p.hook,
		Noun:          "policy",
		Title:         title,
		DenialPrefix:  title + " denied request",
		Audited:       p.policy.Name,
		PathID:        e.pathID,
		Matcher:       e.matcher,
		Spec:          p.spec(e),
		Bindings:      e.bindingNames,
		FailurePolicy: failurePolicyOf(*e.spec.FailurePolicy),
		SideEffects:   chain.SideEffectsNone,
		Timeout:       e.timeout(),
		Stage:         chain.StagePolicy,
		Needs:         p.needs(),
	}}
	for i, value := range d {
		if f := &bindingFields[i]; value != nil && f.policies {
			f.apply(&w, value)
		}
	}
	return w.Entry
}

// clusterSelectors returns the selectors of clusters that bindings of policies have.
func clusterSelectors(entries [2][]*entry) (list []*binding) {
	for _, e := range entries[chain.Validating] {
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
		return e.policy.binding.Origin
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
	bound := map[string]bool{}
	for i := range o.PolicyBindings {
		b := &o.PolicyBindings[i]
		bound[b.Spec.PolicyName] = true
		if !slices.ContainsFunc(o.Policies, func(p manifest.Policy) bool { return p.Name == b.Spec.PolicyName }) {
			l.warn(b.Problem(field.NewPath("spec", "policyName"), b.Spec.PolicyName, "there is no such ValidatingAdmissionPolicy: the binding does nothing"))
		}
	}
	for i := range o.Policies {
		if p := &o.Policies[i]; !bound[p.Name] {
			l.warn(p.Problem(nil, "", "no ValidatingAdmissionPolicyBinding names it: the policy does nothing"))
		}
	}
	for _, e := range every {
		if e.policy != nil && e.policy.clusters != nil && e.policy.clusters.selected == 0 && clusters {
			l.warn(e.policy.binding.Problem(clusterSelectorPath(), fmt.Sprint(e.policy.clusters.clusters), "selects no Cluster"))
		}
	}
}
