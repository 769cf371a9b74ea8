// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/chain"
)

// Objects is what the manifests say, decoded and not yet judged.
type Objects struct {
	Configurations []Configuration
	Clusters       []Cluster
	Bindings       []Binding
	Policies       []Policy
	PolicyBindings []PolicyBinding
	Plugins        []Plugin
	Admission      []AdmissionConfiguration

	MutatingPolicies       []MutatingPolicy
	MutatingPolicyBindings []MutatingPolicyBinding

	Params          []Param
	CustomResources []CustomResource
}

// Cluster is a Cluster object, and where it stands.
type Cluster struct {
	Origin
	v1alpha1.Cluster
}

// Binding is a WebhookBinding object, and where it stands.
type Binding struct {
	Origin
	v1alpha1.WebhookBinding
}

// Plugin is a Plugin object, and where it stands.
type Plugin struct {
	Origin
	v1alpha1.Plugin

	// Of one that an AdmissionConfiguration lists: where, and the file that it names.
	entry        *field.Path
	configuredIn string
}

// Len returns how many objects there are.
func (o *Objects) Len() int {
	return len(o.Configurations) + len(o.Clusters) + len(o.Bindings) + len(o.Policies) + len(o.PolicyBindings) + len(o.Plugins) +
		len(o.Params) + len(o.CustomResources) + len(o.Admission) + len(o.MutatingPolicies) + len(o.MutatingPolicyBindings)
}

// add appends the objects of one more manifest.
func (o *Objects) add(more *Objects) {
	o.Configurations = append(o.Configurations, more.Configurations...)
	o.Clusters = append(o.Clusters, more.Clusters...)
	o.Bindings = append(o.Bindings, more.Bindings...)
	o.Policies = append(o.Policies, more.Policies...)
	o.PolicyBindings = append(o.PolicyBindings, more.PolicyBindings...)
	o.Plugins = append(o.Plugins, more.Plugins...)
	o.Admission = append(o.Admission, more.Admission...)
	o.MutatingPolicies = append(o.MutatingPolicies, more.MutatingPolicies...)
	o.MutatingPolicyBindings = append(o.MutatingPolicyBindings, more.MutatingPolicyBindings...)
	o.Params = append(o.Params, more.Params...)
	o.CustomResources = append(o.CustomResources, more.CustomResources...)
}

// keepCell leaves out the Clusters that a cell does not serve; "": it serves all.
func (o *Objects) keepCell(cell string) {
	if cell == "" {
		return
	}
	o.Clusters = slices.DeleteFunc(o.Clusters, func(c Cluster) bool { return !c.Spec.IsIn(cell) })
}

// Sort brings the objects into the order in which they take part, whatever
// files they came from.
func (o *Objects) Sort() {
	slices.SortStableFunc(o.Configurations, func(a, b Configuration) int {
		return cmp.Or(cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Meta.Name, b.Meta.Name))
	})
	slices.SortStableFunc(o.Clusters, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(o.Bindings, func(a, b Binding) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(o.Policies, func(a, b Policy) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(o.PolicyBindings, func(a, b PolicyBinding) int {
		return cmp.Or(cmp.Compare(a.Spec.PolicyName, b.Spec.PolicyName), cmp.Compare(a.Name, b.Name))
	})
	slices.SortStableFunc(o.MutatingPolicies, func(a, b MutatingPolicy) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(o.MutatingPolicyBindings, func(a, b MutatingPolicyBinding) int {
		return cmp.Or(cmp.Compare(a.Spec.PolicyName, b.Spec.PolicyName), cmp.Compare(a.Name, b.Name))
	})
	slices.SortStableFunc(o.Plugins, func(a, b Plugin) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(o.Params, func(a, b Param) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Cluster, b.Cluster))
	})
}

// Duplicates reports objects of one kind and name, and definitions of one kind.
func (o *Objects) Duplicates() []Problem {
	var problems []Problem
	first := map[string]Origin{}
	claim := func(at Origin, key string) {
		other, seen := first[key]
		if !seen {
			first[key] = at
			return
		}
		problems = append(problems, at.Problem(field.NewPath("metadata", "name"), "",
			fmt.Sprintf("the same object is also in %s", other.File)))
	}
	for _, at := range o.origins() {
		claim(at, at.Object)
	}
	for i := range o.Configurations { // webhooks are known by the name, whatever the kind
		if c := &o.Configurations[i]; c.own {
			claim(c.Origin, c.upstream())
		}
	}
	for i := range o.Params { // those of several clusters may have one name
		p := &o.Params[i]
		claim(p.Origin, p.APIVersion+" "+p.Object+" "+p.Cluster)
	}
	return append(problems, o.rivals()...)
}

func (o *Objects) origins() []Origin {
	var all []Origin
	for i := range o.Configurations {
		all = append(all, o.Configurations[i].Origin)
	}
	for i := range o.Clusters {
		all = append(all, o.Clusters[i].Origin)
	}
	for i := range o.Bindings {
		all = append(all, o.Bindings[i].Origin)
	}
	for i := range o.Policies {
		all = append(all, o.Policies[i].Origin)
	}
	for i := range o.PolicyBindings {
		all = append(all, o.PolicyBindings[i].Origin)
	}
	for i := range o.MutatingPolicies {
		all = append(all, o.MutatingPolicies[i].Origin)
	}
	for i := range o.MutatingPolicyBindings {
		all = append(all, o.MutatingPolicyBindings[i].Origin)
	}
	for i := range o.Plugins {
		all = append(all, o.Plugins[i].Origin)
	}
	for i := range o.CustomResources {
		all = append(all, o.CustomResources[i].Origin)
	}
	return all
}

// Configuration is a Validating- or MutatingWebhookConfiguration of either
// version, or a WebhookConfiguration, in one form: a mutating webhook has every field that a validating one
// has, and reinvocationPolicy.
type Configuration struct {
	Origin
	Phase chain.Phase
	Beta  bool // v1beta1
	Meta  metav1.ObjectMeta
	// Cluster is the one that it is for, by ClusterAnnotation; "": every cluster.
	Cluster  string
	Webhooks []admissionregistrationv1.MutatingWebhook

	own bool // a WebhookConfiguration
}

// Webhook is where the webhook at position i stands.
func (c *Configuration) Webhook(i int) *field.Path {
	at := field.NewPath("webhooks")
	if c.own {
		at = field.NewPath("spec", "webhooks")
	}
	return at.Index(i)
}

// upstream is what the configuration would be called as an object of Kubernetes.
func (c *Configuration) upstream() string {
	if c.Phase == chain.Mutating {
		return "MutatingWebhookConfiguration/" + c.Name()
	}
	return "ValidatingWebhookConfiguration/" + c.Name()
}

// Name is what the configuration is called: its own name, and that of the cluster before
// a slash if it is for one. So no name of one cluster is that of another, or of all.
func (c *Configuration) Name() string {
	if c.Cluster == "" {
		return c.Meta.Name
	}
	return c.Cluster + "/" + c.Meta.Name
}

func validatingConfiguration(c *admissionregistrationv1.ValidatingWebhookConfiguration) Configuration {
	out := Configuration{Phase: chain.Validating, Meta: c.ObjectMeta}
	for i := range c.Webhooks {
		out.Webhooks = append(out.Webhooks, asMutating(&c.Webhooks[i]))
	}
	return out
}

func mutatingConfiguration(c *admissionregistrationv1.MutatingWebhookConfiguration) Configuration {
	return Configuration{Phase: chain.Mutating, Meta: c.ObjectMeta, Webhooks: c.Webhooks}
}

func asMutating(w *admissionregistrationv1.ValidatingWebhook) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name:                    w.Name,
		ClientConfig:            w.ClientConfig,
		Rules:                   w.Rules,
		FailurePolicy:           w.FailurePolicy,
		MatchPolicy:             w.MatchPolicy,
		NamespaceSelector:       w.NamespaceSelector,
		ObjectSelector:          w.ObjectSelector,
		SideEffects:             w.SideEffects,
		TimeoutSeconds:          w.TimeoutSeconds,
		AdmissionReviewVersions: w.AdmissionReviewVersions,
		MatchConditions:         w.MatchConditions,
	}
}

// setDefaults sets what kube-apiserver sets for a webhook of either version
// (kubernetes pkg/apis/admissionregistration/{v1,v1beta1}/defaults.go). A v1
// webhook has no default for sideEffects and admissionReviewVersions.
func setDefaults(w *admissionregistrationv1.MutatingWebhook, phase chain.Phase, beta bool) {
	if beta {
		setBetaDefaults(w)
	} else {
		setV1Defaults(w)
	}
	setDefault(&w.NamespaceSelector, metav1.LabelSelector{})
	setDefault(&w.ObjectSelector, metav1.LabelSelector{})
	if phase == chain.Mutating {
		setDefault(&w.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)
	}
	for i := range w.Rules {
		setDefault(&w.Rules[i].Scope, admissionregistrationv1.AllScopes)
	}
	if w.ClientConfig.Service != nil {
		setDefault(&w.ClientConfig.Service.Port, 443)
	}
}

func setV1Defaults(w *admissionregistrationv1.MutatingWebhook) {
	setDefault(&w.FailurePolicy, admissionregistrationv1.Fail)
	setDefault(&w.MatchPolicy, admissionregistrationv1.Equivalent)
	setDefault(&w.TimeoutSeconds, 10)
}

func setBetaDefaults(w *admissionregistrationv1.MutatingWebhook) {
	setDefault(&w.FailurePolicy, admissionregistrationv1.Ignore)
	setDefault(&w.MatchPolicy, admissionregistrationv1.Exact)
	setDefault(&w.TimeoutSeconds, 30)
	setDefault(&w.SideEffects, admissionregistrationv1.SideEffectClassUnknown)
	if len(w.AdmissionReviewVersions) == 0 {
		w.AdmissionReviewVersions = []string{"v1beta1"}
	}
}

func setDefault[T any](at **T, value T) {
	if *at == nil {
		*at = &value
	}
}

// IsOwn reports whether it is a WebhookConfiguration.
func (c *Configuration) IsOwn() bool { return c.own }
