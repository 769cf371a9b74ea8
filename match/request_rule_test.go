// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/match"
)

// ofUser makes the review a request of a user.
func ofUser(r *codec.Review, name string, groups ...string) *codec.Review {
	r.User.Username = []byte(name)
	for _, g := range groups {
		r.User.Groups = append(r.User.Groups, []byte(g))
	}
	return r
}

func TestRequestRuleMatch(t *testing.T) {
	pods := func() *codec.Review {
		return ofUser(reviewOf(codec.Create, "", "v1", "pods", "", "shop"), "ada", "dev", "ops")
	}
	scale := reviewOf(codec.Update, "apps", "v1", "deployments", "scale", "shop")
	account := func(name string) *codec.Review { return ofUser(pods(), name) }
	one, all := match.RequestRule{ServiceAccounts: []string{"shop/web"}}, match.RequestRule{ServiceAccounts: []string{"lab/x", "shop/*"}}
	tests := []struct {
		name   string
		rule   match.RequestRule
		review *codec.Review
		want   bool
	}{
		{"namespace", match.RequestRule{Namespaces: []string{"lab", "shop"}}, pods(), true},
		{"another namespace", match.RequestRule{Namespaces: []string{"lab"}}, pods(), false},
		{"no prefix of a namespace", match.RequestRule{Namespaces: []string{"sho"}}, pods(), false},
		{"user", match.RequestRule{Users: []string{"ada"}}, pods(), true},
		{"another user", match.RequestRule{Users: []string{"Ada"}}, pods(), false},
		{"one of the groups", match.RequestRule{Groups: []string{"x", "ops"}}, pods(), true},
		{"another group", match.RequestRule{Groups: []string{"x"}}, pods(), false},
		{"operation", match.RequestRule{Operations: []string{"DELETE", "CREATE"}}, pods(), true},
		{"another operation", match.RequestRule{Operations: []string{"DELETE"}}, pods(), false},
		{"all fields", match.RequestRule{Namespaces: []string{"shop"}, Users: []string{"ada"}, Groups: []string{"dev"},
			Resources: []string{"/pods"}, Operations: []string{"CREATE"}}, pods(), true},
		{"all fields but one", match.RequestRule{Namespaces: []string{"shop"}, Users: []string{"ada"}, Groups: []string{"dev"},
			Resources: []string{"/secrets"}, Operations: []string{"CREATE"}}, pods(), false},

		{"resource of the core group", match.RequestRule{Resources: []string{"apps/pods", "/pods"}}, pods(), true},
		{"resource of another group", match.RequestRule{Resources: []string{"apps/pods"}}, pods(), false},
		{"all resources of a group", match.RequestRule{Resources: []string{"/*"}}, pods(), true},
		{"resource of all groups", match.RequestRule{Resources: []string{"*/pods"}}, pods(), true},
		{"subresource", match.RequestRule{Resources: []string{"apps/deployments/scale"}}, scale, true},
		{"all subresources", match.RequestRule{Resources: []string{"apps/deployments/*"}}, scale, true},
		{"subresource of all resources", match.RequestRule{Resources: []string{"apps/*/scale"}}, scale, true},
		{"a resource without its subresources", match.RequestRule{Resources: []string{"apps/deployments", "apps/*"}}, scale, false},
		{"a subresource without its resource", match.RequestRule{Resources: []string{"/pods/exec"}}, pods(), false},

		{"service account", one, account("system:serviceaccount:shop:web"), true},
		{"another service account", one, account("system:serviceaccount:shop:webs"), false},
		{"service account of another namespace", one, account("system:serviceaccount:lab:web"), false},
		{"all service accounts of a namespace", all, account("system:serviceaccount:shop:any"), true},
		{"all service accounts of another", all, account("system:serviceaccount:lab:any"), false},
		{"service accounts are no prefixes", all, account("system:serviceaccount:shopping:any"), false},
		{"user name without the prefix", all, account("shop:web"), false},
		{"user name of a node", all, account("system:node:shop:web"), false},
		{"user name in capitals", all, account("system:ServiceAccount:shop:web"), false},
		{"user name that ends after the prefix", all, account("system:serviceaccount:"), false},
		{"user name without a name", all, account("system:serviceaccount:shop:"), false},
		{"user name without a separator", all, account("system:serviceaccount:shop"), false},
		{"user name with a part too many", all, account("system:serviceaccount:shop:web:x"), false},
		{"user name with a slash", one, account("system:serviceaccount:shop/web"), false},
		{"user name with text before", one, account("x system:serviceaccount:shop:web"), false},
		{"a literal asterisk is a name", one, account("system:serviceaccount:shop:*"), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.rule.Name = "it"
			if errs := match.ValidateRequestRules([]match.RequestRule{tt.rule}, field.NewPath("bypass"), true); errs != nil {
				t.Fatal(errs)
			}
			rules := match.CompileRequestRules([]match.RequestRule{tt.rule})
			if name, ok := rules.Match(tt.review); ok != tt.want || ok != (name == "it") {
				t.Errorf("got %q, %v", name, ok)
			}
		})
	}
}

func TestRequestRuleExtraKeys(t *testing.T) {
	rules := match.CompileRequestRules([]match.RequestRule{{Name: "it", ExtraKeys: []string{"break-glass"}}})
	r := reviewOf(codec.Create, "", "v1", "pods", "", "shop")
	if _, ok := rules.Match(r); ok {
		t.Error("selected without the key")
	}
	r.User.Extra = []codec.ExtraValue{{Key: []byte("scopes")}, {Key: []byte("break-glass")}}
	if _, ok := rules.Match(r); !ok {
		t.Error("not selected with the key, which needs no value")
	}
}

func TestB14BypassGoesByTheRequestsNamespace(t *testing.T) {
	rules := match.CompileRequestRules(match.DefaultBypass(""))
	for _, tt := range []struct {
		request, object string
		want            bool
	}{{"shop", "kube-system", false}, {"kube-system", "shop", true}, {"", "kube-system", false}} {
		t.Run("B14 request in "+tt.request+", object in "+tt.object, func(t *testing.T) {
			r := reviewOf(codec.Create, "", "v1", "pods", "", tt.request)
			r.Object = objectOf(t, `{"metadata":{"namespace":"`+tt.object+`"}}`)
			if name, ok := rules.Match(r); ok != tt.want {
				t.Errorf("got %q, %v", name, ok)
			}
		})
	}
}

func TestDefaultBypass(t *testing.T) {
	defaults := match.DefaultBypass("dispatcher")
	if errs := match.ValidateRequestRules(defaults, field.NewPath("bypass"), false); errs != nil {
		t.Fatal(errs)
	}
	rules := match.CompileRequestRules(defaults)
	if diff := cmp.Diff(defaults, rules.Sources()); diff != "" {
		t.Errorf("the sources are others: %s", diff)
	}
	heartbeat := func(group string, operation codec.Operation, sub string) *codec.Review {
		return ofUser(reviewOf(operation, "", "v1", "nodes", sub, ""), "system:node:n1", group)
	}
	tests := []struct {
		name   string
		review *codec.Review
		want   string // the rule, if any
	}{
		{"kube-system", reviewOf(codec.Delete, "", "v1", "pods", "", "kube-system"), "system-namespaces"},
		{"kube-node-lease", reviewOf(codec.Update, "", "v1", "configmaps", "", "kube-node-lease"), "system-namespaces"},
		{"kube-public is like any other", reviewOf(codec.Create, "", "v1", "pods", "", "kube-public"), ""},
		{"a lease anywhere", reviewOf(codec.Update, "coordination.k8s.io", "v1", "leases", "", "shop"), "leases"},
		{"leases of another group", reviewOf(codec.Update, "x.io", "v1", "leases", "", "shop"), ""},
		{"a node's heartbeat", heartbeat("system:nodes", codec.Update, "status"), "node-heartbeats"},
		{"a node's own object", heartbeat("system:nodes", codec.Update, ""), ""},
		{"a node's status at birth", heartbeat("system:nodes", codec.Create, "status"), ""},
		{"a node's status by somebody else", heartbeat("system:masters", codec.Update, "status"), ""},
		{"the dispatcher's own namespace", reviewOf(codec.Create, "", "v1", "pods", "", "dispatcher"), "dispatcher-namespace"},
		{"cluster-scoped", reviewOf(codec.Create, "rbac.authorization.k8s.io", "v1", "clusterroles", "", ""), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if name, ok := rules.Match(tt.review); name != tt.want || ok != (tt.want != "") {
				t.Errorf("got %q, %v, want %q", name, ok, tt.want)
			}
		})
	}
	t.Run("without a namespace of its own", func(t *testing.T) {
		for _, r := range match.DefaultBypass("") {
			if r.Name == "dispatcher-namespace" || slices.Contains(r.Namespaces, "") {
				t.Errorf("got %+v", r)
			}
		}
	})
	t.Run("none", func(t *testing.T) {
		var none match.RequestRules
		if name, ok := none.Match(tests[0].review); ok {
			t.Errorf("got %q", name)
		}
	})
}

func TestValidateRequestRules(t *testing.T) {
	one := func(r match.RequestRule) []match.RequestRule {
		r.Name = "it"
		return []match.RequestRule{r}
	}
	accounts := func(s string) []match.RequestRule { return one(match.RequestRule{ServiceAccounts: []string{s}}) }
	resources := func(s string) []match.RequestRule { return one(match.RequestRule{Resources: []string{s}}) }
	users := match.RequestRule{Users: []string{"ada"}}
	tests := []struct {
		name  string
		rules []match.RequestRule
		want  []string // type and field of each error
	}{
		{"none", nil, nil},
		{"good", one(users), nil},
		{"no name", []match.RequestRule{users}, []string{"Required value bypass[0].name"}},
		{"a name twice", slices.Concat(one(users), one(users)), []string{"Duplicate value bypass[1].name"}},
		{"no field", one(match.RequestRule{}), []string{"Required value bypass[0]"}},
		{"empty lists", one(match.RequestRule{Users: []string{}}), []string{"Required value bypass[0]"}},
		{"service account without namespace", accounts("/web"), []string{"Invalid value bypass[0].serviceAccounts[0]"}},
		{"service account without name", accounts("shop/"), []string{"Invalid value bypass[0].serviceAccounts[0]"}},
		{"service account without slash", accounts("web"), []string{"Invalid value bypass[0].serviceAccounts[0]"}},
		{"service account with two slashes", accounts("a/b/c"), []string{"Invalid value bypass[0].serviceAccounts[0]"}},
		{"service accounts of all namespaces", accounts("*/web"), []string{"Invalid value bypass[0].serviceAccounts[0]"}},
		{"resource without group", resources("pods"), []string{"Invalid value bypass[0].resources[0]"}},
		{"resource of four parts", resources("a/b/c/d"), []string{"Invalid value bypass[0].resources[0]"}},
		{"resource without a name", resources("apps/"), []string{"Invalid value bypass[0].resources[0]"}},
		{"resource without a subresource", resources("apps/deployments/"), []string{"Invalid value bypass[0].resources[0]"}},
		{"operation in small letters", one(match.RequestRule{Operations: []string{"create"}}), []string{"Unsupported value bypass[0].operations[0]"}},
		{"operation *", one(match.RequestRule{Operations: []string{"*"}}), []string{"Unsupported value bypass[0].operations[0]"}},
		{"operation UNKNOWN", one(match.RequestRule{Operations: []string{"UNKNOWN"}}), []string{"Unsupported value bypass[0].operations[0]"}},
		{"extraKeys", one(match.RequestRule{ExtraKeys: []string{"k"}}), []string{"Forbidden bypass[0].extraKeys"}},
		{"empty entries", one(match.RequestRule{Namespaces: []string{"a", ""}, Users: []string{""}, Groups: []string{""}}),
			[]string{"Required value bypass[0].groups[0]", "Required value bypass[0].namespaces[1]", "Required value bypass[0].users[0]"}},
		{"all that is wrong at once", []match.RequestRule{{ServiceAccounts: []string{"a"}, Operations: []string{"x"}}},
			[]string{"Invalid value bypass[0].serviceAccounts[0]", "Required value bypass[0].name", "Unsupported value bypass[0].operations[0]"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, err := range match.ValidateRequestRules(tt.rules, field.NewPath("bypass"), false) {
				got = append(got, err.Type.String()+" "+err.Field)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("extraKeys where they are allowed", func(t *testing.T) {
		if errs := match.ValidateRequestRules(one(match.RequestRule{ExtraKeys: []string{"k"}}), field.NewPath("failOpen"), true); errs != nil {
			t.Error(errs)
		}
	})
}

func TestRequestRuleMatchAllocatesNothing(t *testing.T) {
	rules := match.CompileRequestRules(append(match.DefaultBypass("dispatcher"),
		match.RequestRule{Name: "x", Users: []string{"x"}, Groups: []string{"x"}},
		match.RequestRule{Name: "accounts", ServiceAccounts: []string{"shop/*"}, Resources: []string{"*/deployments/*"}, ExtraKeys: []string{"k"}}))
	r := ofUser(reviewOf(codec.Update, "apps", "v1", "deployments", "scale", "shop"), "system:serviceaccount:shop:web", "a", "b")
	r.User.Extra = []codec.ExtraValue{{Key: []byte("k")}}
	if n := testing.AllocsPerRun(100, func() {
		if name, ok := rules.Match(r); !ok || name != "accounts" {
			t.Fatal(name, ok)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
