// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
)

// requirements are a label selector as a list without duplicates, sorted: all must
// hold.
type requirements []metav1.LabelSelectorRequirement

func requirementsOf(s *metav1.LabelSelector) requirements {
	if s == nil {
		return nil
	}
	var rs requirements
	for key, value := range s.MatchLabels {
		rs = append(rs, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value}})
	}
	for _, e := range s.MatchExpressions {
		values := slices.Compact(slices.Sorted(slices.Values(e.Values)))
		rs = append(rs, metav1.LabelSelectorRequirement{Key: e.Key, Operator: e.Operator, Values: values})
	}
	slices.SortFunc(rs, compareRequirements)
	return slices.CompactFunc(rs, sameRequirement)
}

func compareRequirements(a, b metav1.LabelSelectorRequirement) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator), slices.Compare(a.Values, b.Values))
}

func sameRequirement(a, b metav1.LabelSelectorRequirement) bool {
	return compareRequirements(a, b) == 0
}

func (rs requirements) has(r metav1.LabelSelectorRequirement) bool {
	return slices.ContainsFunc(rs, func(o metav1.LabelSelectorRequirement) bool { return sameRequirement(o, r) })
}

// without returns those that are not in others.
func (rs requirements) without(others requirements) requirements {
	return slices.DeleteFunc(slices.Clone(rs), others.has)
}

func (rs requirements) selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: rs}
}

func (rs requirements) key() string { return fmt.Sprint([]metav1.LabelSelectorRequirement(rs)) }

// shared returns the requirements that all webhooks have in one of their selectors.
// Where one of these does not hold none of the webhooks is called, whatever another
// would change in the object.
func shared(webhooks []*chain.Entry, selector func(*chain.Entry) *metav1.LabelSelector) requirements {
	common := requirementsOf(selector(webhooks[0]))
	for _, w := range webhooks[1:] {
		theirs := requirementsOf(selector(w))
		common = slices.DeleteFunc(common, func(r metav1.LabelSelectorRequirement) bool { return !theirs.has(r) })
	}
	return common
}

func namespaceSelector(w *chain.Entry) *metav1.LabelSelector { return w.Spec.NamespaceSelector }
func objectSelector(w *chain.Entry) *metav1.LabelSelector    { return w.Spec.ObjectSelector }

// complement returns the requirement that holds where r does not.
func complement(r metav1.LabelSelectorRequirement) metav1.LabelSelectorRequirement {
	opposite := map[metav1.LabelSelectorOperator]metav1.LabelSelectorOperator{
		metav1.LabelSelectorOpIn: metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpNotIn: metav1.LabelSelectorOpIn,
		metav1.LabelSelectorOpExists: metav1.LabelSelectorOpDoesNotExist, metav1.LabelSelectorOpDoesNotExist: metav1.LabelSelectorOpExists,
	}
	r.Operator = opposite[r.Operator]
	return r
}

// byName divides requirements into those on a namespace's name, which a request
// tells, and those on its other labels, which it does not.
func (rs requirements) byName() (names, labels requirements) {
	for _, r := range rs {
		if r.Key == corev1.LabelMetadataName {
			names = append(names, r)
		} else {
			labels = append(labels, r)
		}
	}
	return names, labels
}

// ofNamespace is the text of requirements on a namespace's name. Cluster-scoped
// objects pass any namespaceSelector. A Namespace that has no name yet passes too:
// it counts as one that may be wanted.
func (rs requirements) ofNamespace() string {
	var all []string
	for _, r := range rs {
		all = append(all, holds(r, always, "request.namespace"))
	}
	if allOf(all...) == always {
		return always
	}
	return anyOf(negation(inNamespace), allOf(all...))
}

// ofObject is the text of an objectSelector: the new object or the old one fits.
func (rs requirements) ofObject() string {
	if len(rs) == 0 {
		return always
	}
	var some []string
	for _, object := range []string{"object", "oldObject"} {
		labels := object + ".metadata.labels"
		all := []string{object + " != null", "has(" + object + ".metadata)"}
		for _, r := range rs {
			exists := fmt.Sprintf("has(%[1]s) && %[1]s != null && %[2]s in %[1]s", labels, quote(r.Key))
			all = append(all, holds(r, exists, labels+"["+quote(r.Key)+"]"))
		}
		some = append(some, allOf(all...))
	}
	return anyOf(some...)
}

// holds is the text of one requirement on a value that is there where exists holds.
func holds(r metav1.LabelSelectorRequirement, exists, value string) string {
	listed := allOf(exists, value+" in "+list(r.Values))
	switch r.Operator {
	case metav1.LabelSelectorOpIn:
		return listed
	case metav1.LabelSelectorOpNotIn:
		return negation(listed)
	case metav1.LabelSelectorOpExists:
		return exists
	}
	return negation(exists)
}
