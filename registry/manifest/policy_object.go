// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Policy is a ValidatingAdmissionPolicy of either version, and where it stands.
type Policy struct {
	Origin
	admissionregistrationv1.ValidatingAdmissionPolicy
}

// PolicyBinding is a ValidatingAdmissionPolicyBinding of either version, and where it
// stands.
type PolicyBinding struct {
	Origin
	admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// MutatingPolicy is a MutatingAdmissionPolicy of either version, and where it stands.
type MutatingPolicy struct {
	Origin
	admissionregistrationv1.MutatingAdmissionPolicy
}

// MutatingPolicyBinding is a MutatingAdmissionPolicyBinding of either version, and where
// it stands.
type MutatingPolicyBinding struct {
	Origin
	admissionregistrationv1.MutatingAdmissionPolicyBinding
}

// ClusterSelectorAnnotation of a PolicyBinding is a selector on the labels of Clusters,
// as kubectl writes one: the binding is for those that it selects.
const ClusterSelectorAnnotation = "dispatcher.dev/cluster-selector"

// policy decodes v1 and v1beta1 alike: their fields and defaults are the same.
func (d *decoder) policy(at Origin, doc []byte) error {
	var p admissionregistrationv1.ValidatingAdmissionPolicy
	err := d.into(doc, &p)
	d.paramKind(p.Spec.ParamKind) // of one with problems, too: its params have none
	if err != nil {
		return err
	}
	setDefault(&p.Spec.FailurePolicy, admissionregistrationv1.Fail)
	setMatchDefaults(p.Spec.MatchConstraints)
	d.objects.Policies = append(d.objects.Policies, Policy{at, p})
	return nil
}

func (d *decoder) policyBinding(at Origin, doc []byte) error {
	var b admissionregistrationv1.ValidatingAdmissionPolicyBinding
	if err := d.into(doc, &b); err != nil {
		return err
	}
	setMatchDefaults(b.Spec.MatchResources)
	d.objects.PolicyBindings = append(d.objects.PolicyBindings, PolicyBinding{at, b})
	return nil
}

// mutatingPolicy decodes v1 and v1beta1 alike, too.
func (d *decoder) mutatingPolicy(at Origin, doc []byte) error {
	var p admissionregistrationv1.MutatingAdmissionPolicy
	err := d.into(doc, &p)
	d.paramKind(p.Spec.ParamKind)
	if err != nil {
		return err
	}
	setDefault(&p.Spec.FailurePolicy, admissionregistrationv1.Fail)
	setMatchDefaults(p.Spec.MatchConstraints)
	d.objects.MutatingPolicies = append(d.objects.MutatingPolicies, MutatingPolicy{at, p})
	return nil
}

func (d *decoder) mutatingPolicyBinding(at Origin, doc []byte) error {
	var b admissionregistrationv1.MutatingAdmissionPolicyBinding
	if err := d.into(doc, &b); err != nil {
		return err
	}
	setMatchDefaults(b.Spec.MatchResources)
	d.objects.MutatingPolicyBindings = append(d.objects.MutatingPolicyBindings, MutatingPolicyBinding{at, b})
	return nil
}

func setMatchDefaults(m *admissionregistrationv1.MatchResources) {
	if m == nil {
		return
	}
	setDefault(&m.MatchPolicy, admissionregistrationv1.Equivalent)
	setDefault(&m.NamespaceSelector, metav1.LabelSelector{})
	setDefault(&m.ObjectSelector, metav1.LabelSelector{})
	for _, rules := range [][]admissionregistrationv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			setDefault(&rules[i].Scope, admissionregistrationv1.AllScopes)
		}
	}
}
