// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
)

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
		problems[i].Field = cut(at+below, shownText)
	}
	return problems
}

// setPluginDefaults sets what a spec does not say.
func setPluginDefaults(s *v1alpha1.PluginSpec) {
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
	var p v1alpha1.Plugin
	if err := d.into(doc, &p); err != nil {
		return err
	}
	setPluginDefaults(&p.Spec)
	d.objects.Plugins = append(d.objects.Plugins, Plugin{Origin: at, Plugin: p})
	return nil
}
