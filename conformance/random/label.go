// SPDX-License-Identifier: Apache-2.0

package random

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	labelKeys   = []string{"tier", "team", "example.com/zone"}
	labelValues = []string{"a", "b", "c", ""}
)

func (s source) labels() map[string]string {
	labels := map[string]string{}
	for _, key := range some(s, 0, 2, labelKeys...) {
		labels[key] = pick(s, labelValues...)
	}
	return labels
}

// namespaceNames are where admissions happen; the last is one that no cluster has.
var namespaceNames = []string{"shop", "bank", "kube-system", "nowhere"}

func (s source) namespaces() map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, name := range namespaceNames[:len(namespaceNames)-1] {
		all[name] = s.labels()
	}
	return all
}

// selector returns a selector, which is empty as often as not.
func (s source) selector(further ...string) *metav1.LabelSelector {
	out := &metav1.LabelSelector{}
	if s.percent(55) {
		return out
	}
	keys := append(append([]string{}, labelKeys...), further...)
	if s.percent(40) {
		out.MatchLabels = map[string]string{pick(s, labelKeys...): pick(s, labelValues...)}
	}
	for range s.between(0, 2) {
		out.MatchExpressions = append(out.MatchExpressions, s.requirement(pick(s, keys...)))
	}
	return out
}

func (s source) requirement(key string) metav1.LabelSelectorRequirement {
	r := metav1.LabelSelectorRequirement{
		Key: key,
		Operator: pick(s, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn,
			metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist),
	}
	values := labelValues
	if key == corev1.LabelMetadataName {
		values = namespaceNames
	}
	if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
		r.Values = some(s, 1, 2, values...)
	}
	return r
}
