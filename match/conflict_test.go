// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"fmt"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/match"
)

func TestConflictsWith(t *testing.T) {
	of := func(policy admissionregistrationv1.MatchPolicyType, list ...admissionregistrationv1.RuleWithOperations) match.Spec {
		return match.Spec{MatchPolicy: policy, Rules: list}
	}
	equivalent := func(list ...admissionregistrationv1.RuleWithOperations) match.Spec {
		return of(admissionregistrationv1.Equivalent, list...)
	}
	exact := func(list ...admissionregistrationv1.RuleWithOperations) match.Spec {
		return of(admissionregistrationv1.Exact, list...)
	}
	versions := func(versions ...string) admissionregistrationv1.RuleWithOperations {
		r := rule("x", "", "things", "CREATE")
		r.APIVersions = versions
		return r
	}
	groups := func(groups ...string) admissionregistrationv1.RuleWithOperations {
		r := rule("", "v1", "events")
		r.APIGroups = groups
		return r
	}
	// With what no rule mentions, and the resource itself, one more of each.
	places := func(groups, resources, subs int, version string) admissionregistrationv1.RuleWithOperations {
		r := rule("", version, "")
		r.APIGroups, r.Resources = nil, nil
		for i := range groups {
			r.APIGroups = append(r.APIGroups, fmt.Sprint("g", i))
		}
		for i := range resources {
			text := fmt.Sprint("r", i)
			if i < subs {
				text += fmt.Sprint("/s", i)
			}
			r.Resources = append(r.Resources, text)
		}
		return r
	}
	tests := []struct {
		name string
		a, b match.Spec
		want bool
	}{
		{"the same", equivalent(versions("v1", "v2")), equivalent(versions("v2", "v1")), false},
		{"a wildcard beside a list", equivalent(rule("*", "*", "*/*")), equivalent(versions("v1")), true},
		{"a list beside a part of it", equivalent(versions("v1", "v2")), equivalent(versions("v1")), true},
		{"another order", equivalent(versions("v1"), versions("v2")), equivalent(versions("v2"), versions("v1")), true},
		{"the same order, in two rules each", equivalent(versions("v1"), versions("v2")), equivalent(versions("v1"), versions("v2")), false},
		{"one rule or two", equivalent(versions("v1"), versions("v2")), equivalent(versions("v1", "v2")), true},
		{"wildcards, whatever else is listed", equivalent(versions("v1"), versions("*")), equivalent(versions("*")), false},
		{"other resources", equivalent(versions("v1")), equivalent(rule("x", "v2", "others")), false},
		{"other operations", equivalent(versions("v1")), equivalent(rule("x", "v2", "things", "UPDATE")), false},
		{"other scopes", equivalent(scoped(versions("v1"), admissionregistrationv1.ClusterScope)),
			equivalent(scoped(versions("v2"), admissionregistrationv1.NamespacedScope)), false},
		{"other subresources", equivalent(rule("x", "v1", "things/scale")), equivalent(rule("x", "v2", "things/status")), false},
		{"other groups", equivalent(rule("x", "v1", "things")), equivalent(rule("y", "v2", "things")), false},
		{"an equivalent of another group", equivalent(groups("")), equivalent(groups("events.k8s.io")), true},
		{"both groups", equivalent(groups("", "events.k8s.io")), equivalent(groups("events.k8s.io", "")), false},
		{"one group and both", equivalent(groups("", "events.k8s.io")), equivalent(groups("")), true},
		{"a subresource of an equivalent", equivalent(rule("apps", "v1", "deployments/scale")), equivalent(rule("extensions", "v1", "*/scale")), true},
		{"all groups beside one of an equivalent", equivalent(rule("*", "v1", "events")), equivalent(groups("")), true},
		{"everything beside one of an equivalent", equivalent(rule("*", "v1", "*")), equivalent(groups("")), true},
		{"all resources of two groups that have an equivalent", equivalent(rule("", "v1", "*")), equivalent(rule("events.k8s.io", "v1", "*")), true},
		{"a rule for something else before", equivalent(rule("y", "v1", "others"), versions("v1"), versions("v2")), equivalent(versions("v1"), versions("v2")), false},
		{"CONNECT", equivalent(rule("x", "v1", "things", "CONNECT")), equivalent(rule("x", "v2", "things", "CONNECT")), true},
		{"a Namespace is in no namespace, in whatever version", equivalent(scoped(rule("", "v1", "namespaces"), admissionregistrationv1.ClusterScope)),
			equivalent(scoped(rule("", "v2", "namespaces"), admissionregistrationv1.NamespacedScope)), false},
		{"namespaces of another group are in one", equivalent(scoped(rule("x", "v1", "namespaces"), admissionregistrationv1.NamespacedScope)),
			equivalent(scoped(rule("x", "v2", "namespaces"), admissionregistrationv1.NamespacedScope)), true},
		{"other core resources are in one", equivalent(scoped(rule("", "v1", "things"), admissionregistrationv1.NamespacedScope)),
			equivalent(scoped(rule("", "v2", "things"), admissionregistrationv1.NamespacedScope)), true},
		{"no rules", equivalent(), equivalent(versions("v1")), false},
		{"Exact and Exact", exact(versions("v1")), exact(versions("v2")), false},
		{"Exact lists less", exact(versions("v1")), equivalent(versions("v1", "v2")), false},
		{"Exact lists more", exact(versions("v1", "v2")), equivalent(versions("v1")), true},
		{"Exact lists another group", exact(groups("")), equivalent(groups("events.k8s.io")), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := compile(t, tt.a), compile(t, tt.b)
			if got := a.ConflictsWith(b); got != tt.want {
				t.Errorf("got %v", got)
			}
			if got := b.ConflictsWith(a); got != tt.want {
				t.Errorf("the other way round: got %v", got)
			}
			if a.ConflictsWith(a) || b.ConflictsWith(b) {
				t.Error("one conflicts with itself")
			}
		})
	}
	for subs, want := range map[int]bool{18: false, 19: true} { // taken to conflict
		t.Run(fmt.Sprintf("%d places", 25*20*(subs+2)), func(t *testing.T) {
			all := places(24, 19, subs, "*")
			if got := compile(t, equivalent(places(24, 19, subs, "v1"), all)).ConflictsWith(compile(t, equivalent(all))); got != want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// Rules can change places where they convert alike: in whatever order they list the
// same, and where no request is both's.
func TestConvertsAlike(t *testing.T) {
	of := func(operation admissionregistrationv1.OperationType, resource string, versions ...string) admissionregistrationv1.RuleWithOperations {
		r := rule("x", "", resource, operation)
		r.APIVersions = versions
		return r
	}
	v1, v2 := of("CREATE", "things/a", "v1"), of("CREATE", "things/a", "v2")
	tests := []struct {
		name string
		a, b admissionregistrationv1.RuleWithOperations
		want bool
	}{
		{"other versions", v1, v2, false},
		{"the same versions", v1, of("*", "*/*", "v1"), true},
		{"the same versions in another order, one twice", of("CREATE", "things", "v1", "v2"), of("CREATE", "things", "v2", "v1", "v2"), true},
		{"other operations", v1, of("UPDATE", "things/a", "v2"), true},
		{"other resources", v1, of("CREATE", "others/a", "v2"), true},
		{"all resources", v1, of("CREATE", "*/a", "v2"), false},
		{"other subresources", v1, of("CREATE", "things/b", "v2"), true},
		{"no subresource", v1, of("CREATE", "things", "v2"), true},
		{"all subresources", v1, of("CREATE", "things/*", "v2"), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if match.ConvertsAlike(&tt.a, &tt.b) != tt.want || match.ConvertsAlike(&tt.b, &tt.a) != tt.want {
				t.Errorf("want %v", tt.want)
			}
		})
	}
}

// What is compiled, or compared, stays as it was written.
func TestCompileChangesNothing(t *testing.T) {
	spec := everything()
	r := rule("x", "", "things")
	r.APIGroups, r.APIVersions = []string{"y", "x"}, []string{"v2", "v1"}
	spec.Rules = []admissionregistrationv1.RuleWithOperations{r}
	m := compile(t, spec)
	m.ConflictsWith(compile(t, everything()))
	if got := spec.Rules[0]; !slices.Equal(got.APIVersions, []string{"v2", "v1"}) || !slices.Equal(got.APIGroups, []string{"y", "x"}) {
		t.Errorf("the rule became %+v", got)
	}
}

func TestEquivalentGroup(t *testing.T) {
	for _, tt := range []struct{ group, resource, want string }{
		{"apps", "deployments", "extensions"},
		{"extensions", "deployments", "apps"},
		{"extensions", "ingresses", "networking.k8s.io"},
		{"apps", "statefulsets", "none"},
		{"apps", "ingresses", "none"},
		{"extensions", "pods", "none"},
		{"events.k8s.io", "events", ""},
	} {
		if got, ok := match.EquivalentGroup(tt.group, tt.resource); ok != (tt.want != "none") || ok && got != tt.want {
			t.Errorf("%s in %q: got %q, %v", tt.resource, tt.group, got, ok)
		}
	}
}

// No webhook conflicts with itself, and conflicts are mutual: by the quick checks
// too.
func TestConflictsAreMutual(t *testing.T) {
	cel := celenv.NewCompiler()
	rapid.Check(t, func(t *rapid.T) {
		var ms [2]*match.Matcher
		for i := range ms {
			m, err := match.Compile(drawSpec(t), cel)
			if err != nil {
				t.Fatal(err)
			}
			if ms[i] = m; m.ConflictsWith(m) {
				t.Fatal("it conflicts with itself")
			}
		}
		if ms[0].ConflictsWith(ms[1]) != ms[1].ConflictsWith(ms[0]) {
			t.Fatal("only one of the two conflicts")
		}
	})
}
