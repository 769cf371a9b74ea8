// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/match"
)

func TestRules(t *testing.T) {
	pods := reviewOf(codec.Create, "", "v1", "pods", "", "shop")
	exec := reviewOf(codec.Connect, "", "v1", "pods", "exec", "shop")
	scale := reviewOf(codec.Update, "apps", "v1", "deployments", "scale", "shop")
	nodes := reviewOf(codec.Update, "", "v1", "nodes", "", "")
	namespace := reviewOf(codec.Delete, "", "v1", "namespaces", "", "shop")
	const (
		yes = match.Matched
		no  = match.NoRule
	)
	tests := []struct {
		name   string
		rule   admissionregistrationv1.RuleWithOperations
		review *codec.Review
		want   match.Reason
	}{
		{"the resource", rule("", "v1", "pods"), pods, yes},
		{"the resource is not its subresource", rule("", "v1", "pods"), exec, no},
		{"one subresource", rule("", "v1", "pods/exec"), exec, yes},
		{"one subresource is not the resource", rule("", "v1", "pods/exec"), pods, no},
		{"all subresources", rule("", "v1", "pods/*"), exec, yes},
		{"all subresources and the resource", rule("", "v1", "pods/*"), pods, yes},
		{"one subresource of all resources", rule("*", "v1", "*/scale"), scale, yes},
		{"one subresource of all resources is no other", rule("*", "v1", "*/scale"), exec, no},
		{"all resources", rule("*", "*", "*"), pods, yes},
		{"all resources without subresources", rule("*", "*", "*"), exec, no},
		{"all resources with subresources", rule("*", "*", "*/*"), exec, yes},
		{"another group", rule("apps", "v1", "pods"), pods, no},
		{"another operation", rule("", "v1", "pods", "UPDATE", "DELETE"), pods, no},
		{"one of the operations", rule("", "v1", "pods", "UPDATE", "CREATE"), pods, yes},
		{"namespaced, in a namespace", scoped(rule("*", "*", "*"), admissionregistrationv1.NamespacedScope), pods, yes},
		{"namespaced, in none", scoped(rule("*", "*", "*"), admissionregistrationv1.NamespacedScope), nodes, no},
		{"cluster, in none", scoped(rule("*", "*", "*"), admissionregistrationv1.ClusterScope), nodes, yes},
		{"cluster, in a namespace", scoped(rule("*", "*", "*"), admissionregistrationv1.ClusterScope), pods, no},
		{"a Namespace is in no namespace", scoped(rule("*", "*", "*"), admissionregistrationv1.NamespacedScope), namespace, no},
		{"only v1 has Namespaces, says kube-apiserver", scoped(rule("*", "*", "*"), admissionregistrationv1.NamespacedScope),
			reviewOf(codec.Delete, "", "v2", "namespaces", "", "shop"), yes},
		{"namespaces of another group are namespaced", scoped(rule("*", "*", "*"), admissionregistrationv1.NamespacedScope),
			reviewOf(codec.Delete, "x", "v1", "namespaces", "", "shop"), yes},
		{"a Namespace is cluster-scoped", scoped(rule("*", "*", "*"), admissionregistrationv1.ClusterScope), namespace, yes},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec := everything()
			spec.Rules = []admissionregistrationv1.RuleWithOperations{tt.rule}
			expect(t, compile(t, spec), subjectOf(tt.review), tt.want)
		})
	}
}

func TestB14ScopeGoesByTheRequestsNamespace(t *testing.T) {
	spec := everything()
	spec.Rules = []admissionregistrationv1.RuleWithOperations{scoped(rule("*", "*", "*"), admissionregistrationv1.NamespacedScope)}
	m := compile(t, spec)
	t.Run("B14 the object claims a namespace", func(t *testing.T) {
		r := reviewOf(codec.Create, "", "v1", "nodes", "", "")
		r.Object = objectOf(t, `{"metadata":{"namespace":"shop"}}`)
		expect(t, m, subjectOf(r), match.NoRule)
	})
	t.Run("B14 the object claims another namespace", func(t *testing.T) {
		r := reviewOf(codec.Create, "", "v1", "pods", "", "shop")
		r.Object = objectOf(t, `{"metadata":{"namespace":"kube-system"}}`)
		expect(t, m, subjectOf(r), match.Matched)
	})
}

func TestRuleIndex(t *testing.T) {
	spec := everything()
	spec.Rules = []admissionregistrationv1.RuleWithOperations{rule("apps", "v1", "deployments"), rule("", "v1", "pods"), rule("*", "*", "*")}
	d := expect(t, compile(t, spec), subjectOf(reviewOf(codec.Create, "", "v1", "pods", "", "shop")), match.Matched)
	if d.Rule != 1 {
		t.Errorf("got rule %d, want the first that selects, 1", d.Rule)
	}
}

func TestRuleString(t *testing.T) {
	r := scoped(rule("", "v1", "pods", "CREATE", "UPDATE"), admissionregistrationv1.NamespacedScope)
	r.APIGroups = append(r.APIGroups, "apps")
	if got, want := match.RuleString(r), `CREATE,UPDATE of pods in "",apps/v1 (Namespaced)`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The random reviews and rules draw from few words, so that they often meet.
func drawReview(t *rapid.T) *codec.Review {
	draw := func(name string) codec.GroupVersionResource {
		q := resourceOf(
			rapid.SampledFrom(drawnGroups()).Draw(t, name+" group"),
			rapid.SampledFrom([]string{"v1", "v2"}).Draw(t, name+" version"),
			rapid.SampledFrom(drawnResources()).Draw(t, name+" name"))
		if len(q.Group) == 0 && string(q.Resource) == "namespaces" {
			q.Version = []byte("v1") // there is no other, and another would not be cluster-scoped
		}
		return q
	}
	sub := rapid.SampledFrom([]string{"", "", "status", "scale"})
	r := &codec.Review{
		Operation:          rapid.SampledFrom([]codec.Operation{codec.Create, codec.Update, codec.Delete, codec.Connect}).Draw(t, "operation"),
		Resource:           draw("resource"),
		SubResource:        []byte(sub.Draw(t, "subresource")),
		RequestResource:    draw("requestResource"),
		RequestSubResource: []byte(sub.Draw(t, "requestSubResource")),
		Namespace:          []byte(rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "namespace")),
		Name:               []byte("it"),
	}
	if rapid.Bool().Draw(t, "as sent") {
		r.RequestResource, r.RequestSubResource = r.Resource, r.SubResource
	}
	return r
}

func drawRule(t *rapid.T) admissionregistrationv1.RuleWithOperations {
	some := func(name string, of ...string) []string {
		return rapid.SliceOfN(rapid.SampledFrom(of), 1, 2).Draw(t, name)
	}
	r := admissionregistrationv1.RuleWithOperations{Rule: admissionregistrationv1.Rule{
		APIGroups:   some("groups", "", "apps", "x", "events.k8s.io", "extensions", "*"),
		APIVersions: some("versions", "v1", "v2", "*"),
		Resources: some("resources", "pods", "events", "deployments", "namespaces", "*", "*/*", "pods/*", "namespaces/*", "*/scale",
			"pods/status", "deployments/status", "events/*"),
	}}
	for _, o := range some("operations", "CREATE", "UPDATE", "DELETE", "CONNECT", "*") {
		r.Operations = append(r.Operations, admissionregistrationv1.OperationType(o))
	}
	if scope := rapid.SampledFrom([]string{"", "*", "Namespaced", "Cluster"}).Draw(t, "scope"); scope != "" {
		r.Scope = (*admissionregistrationv1.ScopeType)(&scope)
	}
	return r
}

// attributesOf is a review as the API server's own matcher sees it: as matched or
// as the user sent it.
func attributesOf(r *codec.Review, resource codec.GroupVersionResource, sub []byte) admission.Attributes {
	gvr := schema.GroupVersionResource{Group: string(resource.Group), Version: string(resource.Version), Resource: string(resource.Resource)}
	return admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, string(r.Namespace), string(r.Name), gvr, string(sub),
		admission.Operation(r.Operation.String()), nil, false, nil)
}

// served are the resources of an API server that has every group, version and
// resource that is drawn, with the API server's own notion of which are equivalent.
func served() runtime.EquivalentResourceMapper {
	storage := map[schema.GroupResource]string{ // what NewStorageFactoryConfig makes cohabit
		{Group: "", Resource: "events"}: "/events", {Group: "events.k8s.io", Resource: "events"}: "/events",
		{Group: "apps", Resource: "deployments"}: "/deployments", {Group: "extensions", Resource: "deployments"}: "/deployments",
	}
	mapper := runtime.NewEquivalentResourceRegistryWithIdentity(func(r schema.GroupResource) string { return storage[r] })
	for _, group := range drawnGroups() {
		for _, version := range []string{"v1", "v2"} {
			for _, resource := range drawnResources() {
				for _, sub := range []string{"", "status", "scale"} {
					gv := schema.GroupVersion{Group: group, Version: version}
					if group == "" && version == "v2" && resource == "namespaces" {
						continue
					}
					mapper.RegisterKindFor(gv.WithResource(resource), sub, gv.WithKind("K"))
				}
			}
		}
	}
	return mapper
}

func drawnGroups() []string    { return []string{"", "apps", "x", "events.k8s.io", "extensions"} }
func drawnResources() []string { return []string{"pods", "events", "deployments", "namespaces"} }

// reasonOf is the decision by the API server's own matcher of rules and registry
// of equivalents: the webhook is called with what it lists only.
func reasonOf(spec match.Spec, mapper runtime.EquivalentResourceMapper, r *codec.Review) match.Reason {
	listed := func(a admission.Attributes, anyVersion bool) bool {
		return slices.ContainsFunc(spec.Rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
			if anyVersion {
				rule.APIVersions = []string{"*"}
			}
			m := rules.Matcher{Rule: rule, Attr: a}
			return m.Matches()
		})
	}
	asIs, asSent := attributesOf(r, r.Resource, r.SubResource), attributesOf(r, r.RequestResource, r.RequestSubResource)
	exact := spec.MatchPolicy == admissionregistrationv1.Exact
	switch {
	case exact && !listed(asSent, false):
		return match.NoRule
	case listed(asIs, false):
		return match.Matched
	case exact:
		return match.NotConvertible
	}
	for _, a := range []admission.Attributes{asIs, asSent} {
		for _, e := range mapper.EquivalentResourcesFor(a.GetResource(), a.GetSubresource()) {
			converted := codec.GroupVersionResource{Group: []byte(e.Group), Version: []byte(e.Version), Resource: []byte(e.Resource)}
			if listed(attributesOf(r, converted, []byte(a.GetSubresource())), true) {
				return match.NotConvertible
			}
		}
	}
	return match.NoRule
}

func TestRulesAgainstAPIServer(t *testing.T) {
	cel := celenv.NewCompiler()
	seen, mapper := map[match.Reason]int{}, served()
	rapid.Check(t, func(t *rapid.T) {
		for range 20 { // what is not convertible is rare
			r, spec := drawReview(t), drawSpec(t)
			m, err := match.Compile(spec, cel)
			if err != nil {
				t.Fatal(err)
			}
			want := reasonOf(spec, mapper, r)
			if got := m.Match(subjectOf(r)).Reason; got != want {
				t.Fatalf("got %v, the API server says %v", got, want)
			}
			seen[want]++
		}
	})
	if len(seen) != 3 {
		t.Errorf("the draws were one-sided: %v", seen)
	}
}

func drawSpec(t *rapid.T) match.Spec {
	return match.Spec{
		Rules: rapid.SliceOfN(rapid.Custom(drawRule), 1, 3).Draw(t, "rules"),
		MatchPolicy: rapid.SampledFrom([]admissionregistrationv1.MatchPolicyType{
			admissionregistrationv1.Exact, admissionregistrationv1.Equivalent}).Draw(t, "policy"),
	}
}

func TestRuleStringSaysTheScope(t *testing.T) {
	r := rule("", "v1", "pods", "CREATE", "UPDATE")
	r.APIGroups, r.Resources = []string{"", "apps"}, []string{"pods", "*/scale"}
	const want = `CREATE,UPDATE of pods,*/scale in "",apps/v1`
	for scope, more := range map[admissionregistrationv1.ScopeType]string{
		"": "", admissionregistrationv1.AllScopes: "", admissionregistrationv1.NamespacedScope: " (Namespaced)", admissionregistrationv1.ClusterScope: " (Cluster)",
	} {
		if r.Scope = &scope; scope == "" {
			r.Scope = nil
		}
		if got := match.RuleString(r); got != want+more {
			t.Errorf("got %q, want %q", got, want+more)
		}
	}
}
