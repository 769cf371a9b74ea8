// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/match"
)

func TestObjectSelector(t *testing.T) {
	a1 := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "1"}}
	without := labelSelector(metav1.LabelSelectorOpDoesNotExist, "a")
	const (
		one  = `{"metadata":{"labels":{"a":"1"}}}`
		two  = `{"metadata":{"labels":{"a":"2"}}}`
		bare = `{"metadata":{}}`
		exec = `{"kind":"PodExecOptions","command":["sh"]}`
	)
	tests := []struct {
		name        string
		selector    *metav1.LabelSelector
		object, old string
		want        match.Reason
	}{
		{"the new object", a1, one, two, match.Matched},
		{"the old object", a1, two, one, match.Matched},
		{"neither", a1, two, two, match.ObjectSelector},
		{"the old one, on DELETE", a1, "null", one, match.Matched},
		{"absence in one of them", without, one, bare, match.Matched},
		{"absence", without, bare, "null", match.Matched},
		{"B12 object null on CREATE", a1, "null", "null", match.ObjectSelector},
		{"B12 object null, DoesNotExist", without, "null", "null", match.ObjectSelector},
		{"B12 oldObject null on UPDATE", without, one, "null", match.ObjectSelector},
		{"B12 no metadata", a1, exec, "null", match.ObjectSelector},
		{"B12 no metadata, DoesNotExist", without, exec, "null", match.ObjectSelector},
		{"B12 metadata null, DoesNotExist", without, `{"metadata":null}`, "null", match.ObjectSelector},
		{"B12 no metadata, empty selector", &metav1.LabelSelector{}, exec, "null", match.Matched},
		{"B12 object null, no selector", nil, "null", "null", match.Matched},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec := everything()
			spec.ObjectSelector = tt.selector
			r := reviewOf(codec.Update, "", "v1", "pods", "", "shop")
			r.Object, r.OldObject = objectOf(t, tt.object), objectOf(t, tt.old)
			expect(t, compile(t, spec), subjectOf(r), tt.want)
		})
	}
	t.Run("as mutated so far", func(t *testing.T) {
		spec := everything()
		spec.ObjectSelector = a1
		m, r := compile(t, spec), reviewOf(codec.Create, "", "v1", "pods", "", "shop")
		r.Object = objectOf(t, two)
		s, mutated := subjectOf(r), objectOf(t, one)
		expect(t, m, s, match.ObjectSelector)
		s.View = s.Mutated(&mutated)
		expect(t, m, s, match.Matched)
	})
}
