// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// PluginObject is a Plugin of group dispatcher.dev/v1alpha1 as it stands in a manifest: an
// admission plugin that is compiled in is on, in the clusters that it selects, with this
// configuration. There may be several of one plugin.
type PluginObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec PluginSpec `json:"spec"`
}

// PluginSpec is the spec of a Plugin.
type PluginSpec struct {
	// Plugin is the name of the plugin, such as AlwaysPullImages. "dispatcher version"
	// lists those that are compiled in. Required.
	Plugin string `json:"plugin"`
	// Configuration is the plugin's own.
	Configuration json.RawMessage `json:"configuration,omitempty"`
	// ClusterSelector selects Clusters by their labels. Default: all.
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// Phases are those in which the plugin takes part, of Mutating and Validating.
	// Default: all that the plugin knows. Danger: a plugin that is not asked in the
	// validating phase does not see what webhooks have made of the object since.
	Phases []string `json:"phases,omitempty"`
	// Stage is Policy, Validating or Transactional, in the validating phase. Default:
	// Policy, before all webhooks.
	Stage string `json:"stage,omitempty"`
	// Order moves the plugin within its stage: lower is first. Default: 0; equal numbers
	// stand in the order of names. Danger: a mutating plugin sees what those before it
	// made of the object.
	Order *int32 `json:"order,omitempty"`
	// Mode is Enforce, Warn or Shadow. Default: Enforce. Danger: Warn and Shadow let
	// through what the plugin denies.
	Mode string `json:"mode,omitempty"`
	// FailurePolicy is Fail or Ignore, for when the plugin has no answer. Default: Fail.
	// Danger: Ignore lets through what the plugin has not checked.
	FailurePolicy admissionregistrationv1.FailurePolicyType `json:"failurePolicy,omitempty"`
	// Timeout of one call, a duration such as 250ms, from 1ms to 30s. Default: 10s.
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// ReinvocationPolicy is Never or IfNeeded: whether the plugin is asked again in the
	// mutating phase when the object has been changed after it. Default: IfNeeded.
	ReinvocationPolicy admissionregistrationv1.ReinvocationPolicyType `json:"reinvocationPolicy,omitempty"`
	// Rules are those of a webhook. Default: the plugin's own. Danger: what the rules do
	// not select is not checked.
	Rules []admissionregistrationv1.RuleWithOperations `json:"rules,omitempty"`
	// MatchPolicy is that of a webhook. Default: Equivalent.
	MatchPolicy admissionregistrationv1.MatchPolicyType `json:"matchPolicy,omitempty"`
	// NamespaceSelector is that of a webhook. Default: every namespace.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// ObjectSelector is that of a webhook. Default: every object.
	ObjectSelector *metav1.LabelSelector `json:"objectSelector,omitempty"`
	// MatchConditions are those of a webhook. Default: none.
	MatchConditions []admissionregistrationv1.MatchCondition `json:"matchConditions,omitempty"`
}

// IsObject reports whether it is an object of its own, and not listed in an
// AdmissionConfiguration.
func (p *Plugin) IsObject() bool { return p.entry == nil }

// Path is where a field of the spec is written. What there is to say of a plugin that an
// AdmissionConfiguration lists is said of its name, but for its configuration.
func (p *Plugin) Path(name string) *field.Path {
	switch {
	case p.IsObject():
		return field.NewPath("spec", name)
	case name == "configuration":
		return p.entry.Child(name)
	}
	return p.entry.Child("name")
}

// Place is where the plugin is written down, and the field there that stands for its rules.
func (p *Plugin) Place() (at *field.Path, rules string) {
	if p.IsObject() {
		return field.NewPath("spec"), "rules"
	}
	return p.entry, "name"
}

// ConfigurationProblems renders what is wrong with the plugin's own configuration: values
// that it does not take, and what its decoder says.
func (p *Plugin) ConfigurationProblems(invalid field.ErrorList, undecodable []error) []Problem {
	in, at := p.Origin, p.Path("configuration").String()
	if p.configuredIn != "" {
		in.File, in.Object, at = p.configuredIn, p.Spec.Plugin, ""
	}
	problems := in.Problems(invalid)
	for _, err := range undecodable {
		if _, strict := err.(interface{ FieldPath() string }); strict {
			problems = append(problems, strictProblem(in, err))
		} else {
			problems = append(problems, plainProblem(in, err))
		}
	}
	for i := range problems {
		below := problems[i].Field
		if below == "<nil>" { // the whole of it
			below = ""
		}
		if at != "" && below != "" {
			below = "." + below
		}
		problems[i].Field = at + below
	}
	return problems
}

// setDefaults sets what a spec does not say.
func (s *PluginSpec) setDefaults() {
	if s.FailurePolicy == "" {
		s.FailurePolicy = admissionregistrationv1.Fail
	}
	if s.ReinvocationPolicy == "" {
		s.ReinvocationPolicy = admissionregistrationv1.IfNeededReinvocationPolicy
	}
	if s.MatchPolicy == "" {
		s.MatchPolicy = admissionregistrationv1.Equivalent
	}
	setDefault(&s.NamespaceSelector, metav1.LabelSelector{})
	setDefault(&s.ObjectSelector, metav1.LabelSelector{})
	for i := range s.Rules {
		setDefault(&s.Rules[i].Scope, admissionregistrationv1.AllScopes)
	}
}

func (d *decoder) plugin(at Origin, doc []byte) error {
	var p pluginDocument
	if err := d.into(doc, &p); err != nil {
		return err
	}
	p.Spec.setDefaults()
	d.objects.Plugins = append(d.objects.Plugins, Plugin{Origin: at, PluginObject: p.PluginObject})
	return nil
}

// pluginDocument is what the strict decoder fills.
type pluginDocument struct{ PluginObject }

func (d *pluginDocument) DeepCopyObject() runtime.Object { shallow := *d; return &shallow }
