// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/match"
)

// hooksOf are webhooks of these rules each.
func hooksOf(t *testing.T, policy admissionregistrationv1.MatchPolicyType, lists ...[]admissionregistrationv1.RuleWithOperations) []*chain.Entry {
	t.Helper()
	var hooks []*chain.Entry
	for _, list := range lists {
		spec := match.Spec{Rules: list, MatchPolicy: policy}
		m, err := match.Compile(spec, celenv.NewCompiler())
		if err != nil {
			t.Fatal(err)
		}
		hooks = append(hooks, &chain.Entry{Matcher: m, Spec: spec})
	}
	return hooks
}

// What is registered selects what any of the webhooks' rules selects, and nothing
// else, and no rule is there without need.
func TestUnion(t *testing.T) {
	var all []sent
	for _, operation := range []codec.Operation{codec.Create, codec.Update, codec.Delete, codec.Connect} {
		for _, group := range []string{"", "apps", "x", "y"} {
			for _, version := range []string{"v1", "v2", "v3"} {
				for _, resource := range []string{"pods", "deployments", "namespaces", "others"} {
					for _, sub := range []string{"", "scale", "status", "exec"} {
						for _, namespace := range []string{"", "shop"} {
							gvr := schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
							all = append(all, sent{operation: operation, resource: gvr, sub: sub, namespace: namespace})
						}
					}
				}
			}
		}
	}
	for seed := range 60 {
		d := diceOf(seed)
		lists := make([][]admissionregistrationv1.RuleWithOperations, 1+d.IntN(4))
		for i := range lists {
			for range 1 + d.IntN(3) {
				lists[i] = append(lists[i], d.rule())
			}
		}
		policy := pick(d, admissionregistrationv1.Exact, admissionregistrationv1.Equivalent)
		got := union(hooksOf(t, policy, lists...))
		if len(got) == 0 {
			t.Fatalf("seed %d: no rules of %v", seed, lists)
		}
		for i := range all {
			q := &all[i]
			want := slices.ContainsFunc(slices.Concat(lists...), func(r admissionregistrationv1.RuleWithOperations) bool { return matches(r, q, q.resource) })
			if is := slices.ContainsFunc(got, func(r admissionregistrationv1.RuleWithOperations) bool { return matches(r, q, q.resource) }); is != want {
				t.Fatalf("seed %d: %+v selected %v, want %v: %v of %v", seed, q, is, want, got, lists)
			}
		}
		for i := range got {
			for j := range i {
				if covers(&got[j], &got[i]) || covers(&got[i], &got[j]) && convertAlike(&got[j], got[j+1:i+1]) {
					t.Errorf("seed %d: %v and %v: one covers the other", seed, got[j], got[i])
				}
			}
		}
	}
}

// Of rules that cover each other one stays.
func TestMutuallyCovering(t *testing.T) {
	of := func(resources ...string) []admissionregistrationv1.RuleWithOperations {
		r := anything()
		r.Resources = resources
		return []admissionregistrationv1.RuleWithOperations{r}
	}
	for _, pair := range [][2][]admissionregistrationv1.RuleWithOperations{
		{of("pods", "pods/*"), of("pods/*")},
		{of("*", "pods"), of("*")},
		{of("pods", "pods/*"), of("pods/*", "pods/status")},
		{of("pods/*"), of("pods", "pods/*")},
	} {
		for _, lists := range [][][]admissionregistrationv1.RuleWithOperations{{pair[0], pair[1]}, {slices.Concat(pair[0], pair[1])}} {
			if got := union(hooksOf(t, admissionregistrationv1.Equivalent, lists...)); len(got) != 1 {
				t.Errorf("%v: %d rules", lists, len(got))
			}
		}
	}
}

// A registration without rules would switch its webhooks off.
func TestNoRules(t *testing.T) {
	hooks := hooksOf(t, admissionregistrationv1.Equivalent, nil)
	c := &chain.Cluster{Name: "east", Validating: &chain.Chain{Webhooks: hooks, Paths: []*chain.Path{{Positions: []int{0}}}}, Mutating: &chain.Chain{}}
	if _, err := New(c, Options{}); err == nil || !strings.Contains(err.Error(), "no rules") {
		t.Errorf("got %v", err)
	}
}

// What an API server would not evaluate is an error and not printed.
func TestTooLong(t *testing.T) {
	mutating, validating := configurations()
	mutating.Webhooks = append(mutating.Webhooks, diceOf(1).webhook(0))
	c := compiled(t, mutating, validating)
	names := make([]string, 10_000)
	for i := range names {
		names[i] = strings.Repeat("x", 20)
	}
	c.Bypass = exempt.Compile([]exempt.Rule{{Name: "long", Users: names}})
	if _, err := New(c, Options{}); err == nil || !strings.Contains(err.Error(), "shorten the bypass") {
		t.Errorf("got %v", err)
	}
}

// More conditions than an API server accepts are an error too.
func TestTooManyConditions(t *testing.T) {
	for n, ok := range map[int]bool{mostConditions: true, mostConditions + 1: false} {
		e := entry{name: "validate", conditions: make([]admissionregistrationv1.MatchCondition, n)}
		if err := e.check(); (err == nil) != ok {
			t.Errorf("%d conditions: %v", n, err)
		}
	}
}

// The API server converts to what the first rule lists that fits, so joining two
// rules must not move one in front of another that lists another version, and a rule
// that a later one covers stays in front of one that does.
func TestOrderOfRules(t *testing.T) {
	of := func(version string, operation admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
		r := anything()
		r.Operations, r.APIGroups, r.APIVersions, r.Resources = []admissionregistrationv1.OperationType{operation}, []string{"x"}, []string{version}, []string{"things"}
		return r
	}
	things := func(version string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "x", Version: version, Resource: "things"}
	}
	a := newAPIServer(t, []schema.GroupVersionResource{things("v1"), things("v2"), things("v3")}, nil)
	for want, rules := range map[string][]admissionregistrationv1.RuleWithOperations{
		"v2": {of("v1", "CREATE"), of("v2", "UPDATE"), of("v1", "UPDATE")},
		"v1": {of("v1", "UPDATE"), of("v2", "UPDATE"), of("v1", "*")},
	} {
		got := union(hooksOf(t, admissionregistrationv1.Equivalent, rules))
		form, ok := a.selects(wanted{rules: got, matchPolicy: admissionregistrationv1.Equivalent}, &sent{operation: codec.Update, resource: things("v3")})
		if !ok || form != things(want) {
			t.Errorf("converted to %v by %v, want %s", form, got, want)
		}
	}
}

// An objectSelector must hold for one object, the new or the old: not one part for
// each.
func TestObjectSelectorOfOneObject(t *testing.T) {
	_, validating := configurations()
	for i, s := range []string{"owner", "owner,owner notin (lab)"} {
		selector, err := metav1.ParseToLabelSelector(s)
		if err != nil {
			t.Fatal(err)
		}
		validating.Webhooks = append(validating.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: fmt.Sprintf("w%d.example.com", i), Rules: []admissionregistrationv1.RuleWithOperations{anything()},
			ClientConfig:   admissionregistrationv1.WebhookClientConfig{URL: new("https://hooks.example.com/w")},
			FailurePolicy:  new([]admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Ignore, admissionregistrationv1.Fail}[i]),
			ObjectSelector: selector, SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		})
	}
	c := compiled(t, validating)
	made, err := New(c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{api: newAPIServer(t, nil, storedNamespaces()), cluster: c, made: made}
	q := &sent{
		operation: codec.Update, resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, namespace: "shop",
		labels: map[string]string{}, old: map[string]string{"owner": "lab"},
	}
	comparisonOf(w, chain.Validating, q).down(t, 0, map[string]int{})
}
