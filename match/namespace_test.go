// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"errors"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/match"
)

const metadataName = "kubernetes.io/metadata.name"

var gold = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}

func TestNamespaceSelector(t *testing.T) {
	source := listed{"shop": {"tier": "gold"}, "lab": {}}
	pod := func(namespace string) *codec.Review {
		return reviewOf(codec.Create, "", "v1", "pods", "", namespace)
	}
	named := func(op metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return labelSelector(op, metadataName, values...)
	}
	tests := []struct {
		name     string
		selector *metav1.LabelSelector
		review   *codec.Review
		source   match.Namespaces
		want     match.Reason
	}{
		{"none", nil, pod("mars"), source, match.Matched},
		{"empty", &metav1.LabelSelector{}, pod("mars"), source, match.Matched},
		{"selected", gold, pod("shop"), source, match.Matched},
		{"not selected", gold, pod("lab"), source, match.NamespaceSelector},
		{"cluster-scoped objects always pass", gold, reviewOf(codec.Update, "", "v1", "nodes", "", ""), source, match.Matched},
		{"an unknown namespace", gold, pod("mars"), source, match.NamespaceUnknown},
		{"an unknown namespace, by name", named(metav1.LabelSelectorOpIn, "mars"), pod("mars"), source, match.Matched},
		{"an unknown namespace, by another name", named(metav1.LabelSelectorOpNotIn, "mars"), pod("mars"), source, match.NamespaceSelector},
		{"no source, by name", named(metav1.LabelSelectorOpIn, "mars"), pod("mars"), nil, match.Matched},
		{"no source, the name exists", named(metav1.LabelSelectorOpExists), pod("mars"), nil, match.Matched},
		{"no source, the name does not not exist", named(metav1.LabelSelectorOpDoesNotExist), pod("mars"), nil, match.NamespaceSelector},
		{"no source, another label is not guessed", labelSelector(metav1.LabelSelectorOpDoesNotExist, "tier"), pod("mars"), nil, match.NamespaceUnknown},
		{"the name is known where the source does not say it", &metav1.LabelSelector{
			MatchLabels: map[string]string{"tier": "gold", metadataName: "shop"}}, pod("shop"), source, match.Matched},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec := everything()
			spec.NamespaceSelector = tt.selector
			s := subjectOf(tt.review)
			s.Namespaces = tt.source
			d := expect(t, compile(t, spec), s, tt.want)
			if (d.Err != nil) != (tt.want == match.NamespaceUnknown) {
				t.Errorf("got error %v", d.Err)
			}
		})
	}
}

// unsure is a source that cannot be asked now.
type unsure struct{}

func (unsure) NamespaceLabels(string) (map[string]string, error) {
	return nil, errors.New("the cluster does not answer")
}

// What is unknown of a namespace is not guessed from the objects in it, and the error
// says whether there is no such namespace or nobody knows.
func TestUnknownNamespace(t *testing.T) {
	for _, tt := range []struct {
		source match.Namespaces
		want   string
	}{
		{listed{}, `namespaces "mars" not found`},
		{unsure{}, `the labels of namespace "mars" are not known: the cluster does not answer`},
		{nil, `the labels of namespace "mars" are not known: the cluster has no source of them`},
	} {
		spec := everything()
		spec.NamespaceSelector = gold
		r := reviewOf(codec.Update, "", "v1", "pods", "", "mars")
		r.Object = objectOf(t, `{"metadata":{"labels":{"tier":"gold"}}}`)
		r.OldObject = r.Object
		s := subjectOf(r)
		s.Namespaces = tt.source
		if d := expect(t, compile(t, spec), s, match.NamespaceUnknown); d.Err == nil || d.Err.Error() != tt.want {
			t.Errorf("got %v, want %s", d.Err, tt.want)
		}
	}
}

// notLookedUp is a source of a cluster that must be asked.
type notLookedUp struct{}

func (notLookedUp) NamespaceLabels(string) (map[string]string, error) {
	return nil, match.ErrNotLookedUp
}

// A namespace that must be looked up leaves the match open, until what was found of
// it is set. Only then does the old object of a Namespace stand in for the answer.
func TestNamespaceNotLookedUp(t *testing.T) {
	spec := everything()
	spec.NamespaceSelector = gold
	m := compile(t, spec)
	pod := reviewOf(codec.Create, "", "v1", "pods", "", "shop")
	deleted := reviewOf(codec.Delete, "", "v1", "namespaces", "", "shop")
	deleted.OldObject = objectOf(t, `{"metadata":{"name":"shop","labels":{"tier":"gold"}}}`)
	for _, tt := range []struct {
		name   string
		review *codec.Review
		labels map[string]string
		err    error
		want   match.Reason
	}{
		{"selected", pod, map[string]string{"tier": "gold"}, nil, match.Matched},
		{"not selected", pod, map[string]string{"tier": "tin"}, nil, match.NamespaceSelector},
		{"not found", pod, nil, match.ErrNoNamespace, match.NamespaceUnknown},
		{"not answered", pod, nil, errors.New("no answer"), match.NamespaceUnknown},
		{"B18a DELETE, stored", deleted, map[string]string{"tier": "tin"}, nil, match.NamespaceSelector},
		{"B18a DELETE, not answered", deleted, nil, errors.New("no answer"), match.Matched},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := subjectOf(tt.review)
			s.Namespaces = notLookedUp{}
			if d := expect(t, m, s, match.NamespaceNotLookedUp); d.Rule != 0 || !errors.Is(d.Err, match.ErrNotLookedUp) {
				t.Errorf("%+v", d)
			}
			s.SetNamespaceLabels(tt.labels, tt.err)
			expect(t, m, s, tt.want)
		})
	}
}

// A Namespace is submitted with tier gold, where it is stored with tier tin, or
// the other way round: what decides shows.
func TestB18aNamespacesThemselves(t *testing.T) {
	const (
		gold1 = `{"metadata":{"name":"shop","labels":{"tier":"gold"}}}`
		tin   = `{"metadata":{"name":"shop","labels":{"tier":"tin"}}}`
	)
	knowsTin, knowsGold := listed{"shop": {"tier": "tin"}}, listed{"shop": {"tier": "gold"}}
	tests := []struct {
		name        string
		operation   codec.Operation
		sub         string
		object, old string
		source      match.Namespaces
		want        match.Reason
	}{
		{"B18a CREATE, submitted", codec.Create, "", gold1, "null", listed{}, match.Matched},
		{"B18a CREATE, submitted otherwise", codec.Create, "", tin, "null", knowsGold, match.NamespaceSelector},
		{"B18a CREATE without labels", codec.Create, "", `{"metadata":{"name":"shop"}}`, "null", knowsGold, match.NamespaceSelector},
		{"B18a CREATE without an object cannot be decided", codec.Create, "", "null", "null", knowsGold, match.NamespaceUnknown},
		{"B18a UPDATE, submitted", codec.Update, "", gold1, tin, knowsTin, match.Matched},
		{"B18a UPDATE, stored", codec.Update, "", tin, gold1, knowsGold, match.NamespaceSelector},
		{"B18a UPDATE of status, stored", codec.Update, "status", tin, tin, knowsGold, match.Matched},
		{"B18a UPDATE of finalize, submitted", codec.Update, "finalize", gold1, tin, knowsTin, match.NamespaceSelector},
		{"B18a DELETE, stored", codec.Delete, "", "null", tin, knowsGold, match.Matched},
		{"B18a DELETE, unknown to the source", codec.Delete, "", "null", gold1, listed{}, match.Matched},
		{"B18a DELETE, no source", codec.Delete, "", "null", gold1, nil, match.Matched},
		{"B18a DELETE, no source, not selected", codec.Delete, "", "null", tin, nil, match.NamespaceSelector},
		{"B18a DELETE, known to nobody", codec.Delete, "", "null", "null", listed{}, match.NamespaceUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec := everything()
			spec.NamespaceSelector = gold
			r := reviewOf(tt.operation, "", "v1", "namespaces", tt.sub, "shop")
			r.Object, r.OldObject = objectOf(t, tt.object), objectOf(t, tt.old)
			s := subjectOf(r)
			s.Namespaces = tt.source
			expect(t, compile(t, spec), s, tt.want)
		})
	}
	t.Run("B18a as mutated so far", func(t *testing.T) {
		spec := everything()
		spec.NamespaceSelector = gold
		m, r := compile(t, spec), reviewOf(codec.Create, "", "v1", "namespaces", "", "shop")
		r.Object = objectOf(t, tin)
		s := subjectOf(r)
		expect(t, m, s, match.NamespaceSelector)
		mutated := objectOf(t, gold1)
		s.View = s.Mutated(&mutated)
		expect(t, m, s, match.Matched)
	})
}

func TestNameOfASubmittedNamespace(t *testing.T) {
	tests := []struct {
		name, object string
		want         match.Reason
	}{
		{"without the label", `{"metadata":{"name":"shop"}}`, match.Matched},
		{"with another in the label", `{"metadata":{"name":"shop","labels":{"kubernetes.io/metadata.name":"kube-system"}}}`, match.Matched},
		{"of another name", `{"metadata":{"name":"lab","labels":{"kubernetes.io/metadata.name":"shop"}}}`, match.NamespaceSelector},
		{"without a name yet", `{"metadata":{"generateName":"shop"}}`, match.NamespaceSelector},
		{"without a name yet, with the label", `{"metadata":{"generateName":"x","labels":{"kubernetes.io/metadata.name":"shop"}}}`, match.Matched},
	}
	spec := everything()
	spec.NamespaceSelector = labelSelector(metav1.LabelSelectorOpIn, metadataName, "shop")
	m := compile(t, spec)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := reviewOf(codec.Create, "", "v1", "namespaces", "", "")
			r.Object = objectOf(t, tt.object)
			expect(t, m, subjectOf(r), tt.want)
		})
	}
}

// TestUnknownNamespaceMattersOnlyIfAsked is what keeps one unknown namespace from
// failing every webhook.
func TestUnknownNamespaceMattersOnlyIfAsked(t *testing.T) {
	r := reviewOf(codec.Create, "", "v1", "pods", "", "mars")
	r.Object = objectOf(t, `{"metadata":{}}`)
	s := subjectOf(r)
	s.Namespaces = listed{}
	spec := everything()
	spec.NamespaceSelector = gold
	expect(t, compile(t, spec), s, match.NamespaceUnknown)

	spec.Rules = []admissionregistrationv1.RuleWithOperations{rule("apps", "*", "*")}
	expect(t, compile(t, spec), s, match.NoRule)

	spec = everything()
	spec.NamespaceSelector, spec.ObjectSelector = gold, labelSelector(metav1.LabelSelectorOpExists, "a")
	expect(t, compile(t, spec), s, match.ObjectSelector)
}

// counted counts how often the source is asked.
type counted struct{ times int }

func (c *counted) NamespaceLabels(string) (map[string]string, error) {
	c.times++
	return map[string]string{"tier": "gold"}, nil
}

func TestOneAnswerForAllWebhooks(t *testing.T) {
	spec := everything()
	spec.NamespaceSelector = gold
	source := &counted{}
	s := subjectOf(reviewOf(codec.Create, "", "v1", "pods", "", "shop"))
	s.Namespaces = source
	for range 3 {
		expect(t, compile(t, spec), s, match.Matched)
	}
	if source.times != 1 {
		t.Errorf("the source was asked %d times", source.times)
	}
}

func TestNeededLabels(t *testing.T) {
	selector := &metav1.LabelSelector{
		MatchLabels: map[string]string{"tier": "gold", metadataName: "a"},
		MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "env", Operator: metav1.LabelSelectorOpExists}, {Key: "tier", Operator: metav1.LabelSelectorOpExists},
		},
	}
	tests := []struct {
		name     string
		rule     admissionregistrationv1.RuleWithOperations
		selector *metav1.LabelSelector
		want     []string
	}{
		{"E9 any scope", rule("*", "*", "*"), selector, []string{"env", "tier"}},
		{"E9 namespaced", scoped(rule("", "v1", "pods"), admissionregistrationv1.NamespacedScope), selector, []string{"env", "tier"}},
		{"E9 cluster-scoped objects pass", scoped(rule("*", "*", "*"), admissionregistrationv1.ClusterScope), selector, nil},
		{"E9 Namespaces bring their own", rule("", "v1", "namespaces/*"), selector, nil},
		{"E9 namespaces of another group", rule("x", "v1", "namespaces"), selector, []string{"env", "tier"}},
		{"E9 namespaces of the core and another group", func() admissionregistrationv1.RuleWithOperations {
			r := rule("", "v1", "namespaces")
			r.APIGroups = []string{"", "x"}
			return r
		}(), selector, []string{"env", "tier"}},
		{"E9 the name is known", rule("*", "*", "*"), labelSelector(metav1.LabelSelectorOpIn, metadataName, "a"), nil},
		{"E9 no selector", rule("*", "*", "*"), nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec := everything()
			spec.Rules, spec.NamespaceSelector = []admissionregistrationv1.RuleWithOperations{tt.rule}, tt.selector
			if got := compile(t, spec).NeededLabels(); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestB14NamespaceSelectorGoesByTheRequestsNamespace(t *testing.T) {
	spec := everything()
	spec.NamespaceSelector = gold
	m := compile(t, spec)
	for _, tt := range []struct {
		request, object string
		want            match.Reason
	}{
		{"shop", "lab", match.Matched},
		{"lab", "shop", match.NamespaceSelector},
		{"", "lab", match.Matched}, // cluster-scoped, whatever the object says
	} {
		t.Run("B14 request in "+tt.request+", object in "+tt.object, func(t *testing.T) {
			r := reviewOf(codec.Create, "", "v1", "pods", "", tt.request)
			r.Object = objectOf(t, `{"metadata":{"namespace":"`+tt.object+`"}}`)
			s := subjectOf(r)
			s.Namespaces = listed{"shop": {"tier": "gold"}, "lab": {"tier": "tin"}}
			expect(t, m, s, tt.want)
		})
	}
}
