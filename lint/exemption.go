// SPDX-License-Identifier: Apache-2.0

package lint

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// exemptions is W6: labels by which those whom a webhook judges get out of its sight.
// One that mutates gives defaults, which people may decline.
func (l *linter) exemptions() {
	l.each(func(w *webhook) {
		if w.of.Mutating {
			return
		}
		if s := w.ObjectSelector; s != nil {
			for i, r := range s.MatchExpressions {
				if exempts(r) {
					l.report(w, Warning, w.at.Child("objectSelector", "matchExpressions").Index(i), r.Key, "leaves out objects by a label that their author sets")
				}
			}
		}
		if s := w.NamespaceSelector; s != nil {
			for i, r := range s.MatchExpressions {
				if exempts(r) && r.Key != corev1.LabelMetadataName {
					l.report(w, Warning, w.at.Child("namespaceSelector", "matchExpressions").Index(i), r.Key, "leaves out namespaces by a label that everybody sets who may update a namespace")
				}
			}
		}
	})
}

func exempts(r metav1.LabelSelectorRequirement) bool {
	return r.Operator == metav1.LabelSelectorOpNotIn || r.Operator == metav1.LabelSelectorOpDoesNotExist
}
