// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	"github.com/admission-dispatcher/dispatcher/conformance/pair"
	"github.com/admission-dispatcher/dispatcher/conformance/random"
	"github.com/admission-dispatcher/dispatcher/conformance/script"
)

// variant is a Case in which some webhooks say to the API server what the
// dispatcher reads, for the reasons of rows.
type variant struct {
	rows       []string
	mutating   []random.Configuration
	validating []random.Configuration

	notConvertible map[string]bool // configuration/webhook
}

// standIns returns a variant for each row that holds for one of the webhooks, and,
// last, if there are several, one for all together.
func standIns(c *random.Case, a admission.Attributes) []variant {
	all := newVariant(c, a, nil)
	if len(all.rows) == 0 {
		return nil
	}
	var variants []variant
	for _, row := range all.rows {
		variants = append(variants, newVariant(c, a, []string{row}))
	}
	if len(variants) > 1 {
		variants = append(variants, all)
	}
	return variants
}

// newVariant applies those rows, or all of them.
func newVariant(c *random.Case, a admission.Attributes, only []string) variant {
	v := variant{notConvertible: map[string]bool{}}
	apply := func(list []random.Configuration, mutating bool) []random.Configuration {
		out := make([]random.Configuration, len(list))
		for i, configuration := range list {
			out[i] = random.Configuration{Name: configuration.Name}
			for _, w := range configuration.Webhooks {
				instead, row := standIn(c, w, a, reading(c, &w, mutating))
				if row != "" && (only == nil || slices.Contains(only, row)) {
					if row == pair.Convert {
						v.notConvertible[configuration.Name+"/"+w.Name] = true
					}
					w = instead
					v.rows = append(v.rows, row)
				}
				out[i].Webhooks = append(out[i].Webhooks, w)
			}
		}
		return out
	}
	v.mutating, v.validating = apply(c.Mutating, true), apply(c.Validating, false)
	slices.Sort(v.rows)
	v.rows = slices.Compact(v.rows)
	return v
}

func reading(c *random.Case, w *random.Webhook, mutating bool) script.Reading {
	return script.Reading{
		Mutating:  mutating,
		V1beta1:   slices.IndexFunc(w.AdmissionReviewVersions, isBeta) == slices.IndexFunc(w.AdmissionReviewVersions, isKnown),
		APIServer: c.Compatibility == "APIServer",
	}
}

func isBeta(version string) bool  { return version == "v1beta1" }
func isKnown(version string) bool { return version == "v1" || version == "v1beta1" }

func standIn(c *random.Case, w random.Webhook, a admission.Attributes, r script.Reading) (random.Webhook, string) {
	if namedOnly(w.NamespaceSelector) && a.GetNamespace() != "" && c.Namespaces[a.GetNamespace()] == nil {
		selector, _ := metav1.LabelSelectorAsSelector(w.NamespaceSelector) // the plugin would not have it either
		if !selector.Matches(labels.Set{corev1.LabelMetadataName: a.GetNamespace()}) {
			w.Rules = nil
		}
		w.NamespaceSelector = &metav1.LabelSelector{}
		if convertible(c, &w, a) {
			return w, pair.Name
		}
	}
	if !convertible(c, &w, a) {
		// Nothing else is asked once the object cannot be converted.
		none := admissionregistrationv1.SideEffectClassNone
		w.Rules, w.MatchConditions, w.SideEffects = anyForm(w.Rules, a.GetResource().Group), nil, &none
		w.Script = script.Script{Form: script.Status500}
		return w, pair.Convert
	}
	instead, row := w.Script.StandIn(r)
	if row == "" && r.Mutating && a.GetOperation() == admission.Connect && w.Script.Patches(r) {
		instead, row = w.Script.Refused(), "C16"
	}
	w.Script = instead
	return w, row
}

// namedOnly reports whether a selector is about the namespace's name alone.
func namedOnly(s *metav1.LabelSelector) bool {
	for _, r := range s.MatchExpressions {
		if r.Key != corev1.LabelMetadataName {
			return false
		}
	}
	return len(s.MatchLabels) == 0 && len(s.MatchExpressions) > 0
}

// convertible is false for a webhook that lists the resource in other forms only,
// and wants to have it converted, where the API server does not do that.
func convertible(c *random.Case, w *random.Webhook, a admission.Attributes) bool {
	return c.Registered || *w.MatchPolicy == admissionregistrationv1.Exact || matches(w.Rules, a) || !matches(anyVersion(w.Rules), a) && !matchesConverted(anyVersion(w.Rules), a)
}

func matches(all []admissionregistrationv1.RuleWithOperations, a admission.Attributes) bool {
	return slices.ContainsFunc(all, func(r admissionregistrationv1.RuleWithOperations) bool {
		m := rules.Matcher{Rule: r, Attr: a}
		return m.Matches()
	})
}

// otherForm is an admission about one of the other forms of its object.
type otherForm struct {
	admission.Attributes
	resource schema.GroupVersionResource
}

func (o otherForm) GetResource() schema.GroupVersionResource { return o.resource }

// matchesConverted reports whether the API server, if it may, converts for one of
// the rules.
func matchesConverted(all []admissionregistrationv1.RuleWithOperations, a admission.Attributes) bool {
	return slices.ContainsFunc(forms.EquivalentResourcesFor(a.GetResource(), a.GetSubresource()), func(r schema.GroupVersionResource) bool {
		return matches(all, otherForm{a, r})
	})
}

// anyForm returns the rules in any version, and in one more group.
func anyForm(all []admissionregistrationv1.RuleWithOperations, group string) []admissionregistrationv1.RuleWithOperations {
	out := anyVersion(all)
	for i := range out {
		out[i].APIGroups = append(slices.Clone(out[i].APIGroups), group)
	}
	return out
}

func anyVersion(all []admissionregistrationv1.RuleWithOperations) []admissionregistrationv1.RuleWithOperations {
	out := slices.Clone(all)
	for i := range out {
		out[i].APIVersions = []string{"*"}
	}
	return out
}
