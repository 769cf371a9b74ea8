// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/match"
)

func drawLabels(t *rapid.T) map[string]string {
	return rapid.MapOfN(
		rapid.SampledFrom([]string{"a", "b", "c", metadataName}),
		rapid.SampledFrom([]string{"", "1", "2", "shop"}), 0, 3).Draw(t, "labels")
}

func drawSelector(t *rapid.T) *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	if rapid.Bool().Draw(t, "matchLabels") {
		s.MatchLabels = drawLabels(t)
	}
	for range rapid.IntRange(0, 2).Draw(t, "expressions") {
		e := metav1.LabelSelectorRequirement{
			Key: rapid.SampledFrom([]string{"a", "b", "c", metadataName}).Draw(t, "key"),
			Operator: rapid.SampledFrom([]metav1.LabelSelectorOperator{
				metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
			}).Draw(t, "operator"),
		}
		if e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn {
			e.Values = rapid.SliceOfN(rapid.SampledFrom([]string{"", "1", "2", "shop"}), 1, 3).Draw(t, "values")
		}
		s.MatchExpressions = append(s.MatchExpressions, e)
	}
	return s
}

// withLabels is an object with labels, and perhaps many more, so that it is in
// either of the forms that codec has.
func withLabels(t *rapid.T, has map[string]string) codec.Object {
	all := map[string]string{}
	if rapid.Bool().Draw(t, "many") {
		for c := 'd'; c <= 'z'; c++ {
			all[string(c)] = "x"
		}
	}
	for key, value := range has {
		all[key] = value
	}
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": all}})
	if err != nil {
		t.Fatal(err)
	}
	var o codec.Object
	if err := codec.ScanObject(&o, raw); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestObjectSelectorAgainstAPIMachinery(t *testing.T) {
	cel := celenv.NewCompiler()
	seen := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		s, has, had := drawSelector(t), drawLabels(t), drawLabels(t)
		m, oracle := compileSelectors(t, match.Spec{ObjectSelector: s}, cel, s)
		r := reviewOf(codec.Update, "", "v1", "pods", "", "shop")
		r.Object, r.OldObject = withLabels(t, has), withLabels(t, had)
		want := oracle.Matches(labels.Set(has)) || oracle.Matches(labels.Set(had))
		if got := m.Match(subjectOf(r)).Reason; (got == match.Matched) != want {
			t.Fatalf("got %v, apimachinery says %v", got, want)
		}
		seen[want]++
	})
	if len(seen) != 2 {
		t.Errorf("the draws were one-sided: %v", seen)
	}
}

// TestNamespaceSelectorAgainstAPIMachinery holds all three forms of a namespace's
// labels against apimachinery: stored, submitted, of an old object.
func TestNamespaceSelectorAgainstAPIMachinery(t *testing.T) {
	cel := celenv.NewCompiler()
	rapid.Check(t, func(t *rapid.T) {
		s, has := drawSelector(t), drawLabels(t)
		m, oracle := compileSelectors(t, match.Spec{NamespaceSelector: s}, cel, s)
		object := withLabels(t, has)
		object.Name = []byte("shop")
		has[metadataName] = "shop" // as the API server sees to
		stored := subjectOf(reviewOf(codec.Update, "", "v1", "pods", "", "shop"))
		stored.Namespaces = listed{"shop": has}
		submitted := subjectOf(reviewOf(codec.Create, "", "v1", "namespaces", "", "shop"))
		submitted.Object = &object
		deleted := subjectOf(reviewOf(codec.Delete, "", "v1", "namespaces", "", "shop"))
		deleted.Review.OldObject = object
		want := oracle.Matches(labels.Set(has))
		for name, subject := range map[string]*match.Subject{"stored": stored, "submitted": submitted, "deleted": deleted} {
			if got := m.Match(subject).Reason; (got == match.Matched) != want {
				t.Fatalf("%s: got %v, apimachinery says %v", name, got, want)
			}
		}
	})
}

func compileSelectors(t *rapid.T, spec match.Spec, cel *celenv.Compiler, s *metav1.LabelSelector) (*match.Matcher, labels.Selector) {
	spec.Rules = everything().Rules
	m, err := match.Compile(spec, cel)
	if err != nil {
		t.Fatal(err)
	}
	oracle, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	return m, oracle
}
