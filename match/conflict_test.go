// SPDX-License-Identifier: Apache-2.0

package match_test

import (
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
