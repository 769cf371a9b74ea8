// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/match"
)

// by makes ada, or a service account, the user of a review.
func by(r *codec.Review, username string, groups ...string) *codec.Review {
	r.User.Username = []byte(username)
	for _, g := range groups {
		r.User.Groups = append(r.User.Groups, []byte(g))
	}
	return r
}

func TestRequestRules(t *testing.T) {
	pod := func() *codec.Review { return reviewOf(codec.Create, "", "v1", "pods", "", "shop") }
	scale := func() *codec.Review { return reviewOf(codec.Update, "apps", "v1", "deployments", "scale", "shop") }
	robot := by(pod(), "system:serviceaccount:ci:deployer")
	traced := pod()
	traced.User.Extra = []codec.ExtraValue{{Key: []byte("break-glass"), Values: [][]byte{[]byte("yes")}}}
	converted := reviewOf(codec.Create, "events.k8s.io", "v1", "events", "", "shop")
	converted.RequestResource = resourceOf("", "v1", "events")
	connect := reviewOf(codec.Connect, "", "v1", "pods", "exec", "shop")
	elsewhere := pod()
	elsewhere.Object = objectOf(t, `{"metadata":{"namespace":"kube-system","labels":{"bypass":"yes"}}}`)
	tests := []struct {
		name   string
		rule   match.RequestRule
		review *codec.Review
		want   bool
	}{
		{"namespace", match.RequestRule{Namespaces: []string{"lab", "shop"}}, pod(), true},
		{"another namespace", match.RequestRule{Namespaces: []string{"lab"}}, pod(), false},
		{"B14 the object's namespace does not count", match.RequestRule{Namespaces: []string{"kube-system"}}, elsewhere, false},
		{"user", match.RequestRule{Users: []string{"ada"}}, by(pod(), "ada"), true},
		{"another user", match.RequestRule{Users: []string{"ada"}}, by(pod(), "bob"), false},
		{"no user", match.RequestRule{Users: []string{"ada"}}, pod(), false},
		{"one of the groups", match.RequestRule{Groups: []string{"ops"}}, by(pod(), "ada", "dev", "ops"), true},
		{"no group", match.RequestRule{Groups: []string{"ops"}}, by(pod(), "ops"), false},
		{"service account", match.RequestRule{ServiceAccounts: []string{"ci/deployer"}}, robot, true},
		{"all of a namespace", match.RequestRule{ServiceAccounts: []string{"ci/*"}}, robot, true},
		{"another of the namespace", match.RequestRule{ServiceAccounts: []string{"ci/deploy"}}, robot, false},
		{"of another namespace", match.RequestRule{ServiceAccounts: []string{"c/*"}}, robot, false},
		{"a user who is no service account", match.RequestRule{ServiceAccounts: []string{"ci/*"}}, by(pod(), "ci:deployer"), false},
		{"a name cut short", match.RequestRule{ServiceAccounts: []string{"ci/*"}}, by(pod(), "system:serviceaccount:ci"), false},
		{"core resource", match.RequestRule{Resources: []string{"/pods"}}, pod(), true},
		{"resource of another group", match.RequestRule{Resources: []string{"apps/pods"}}, pod(), false},
		{"a resource without its subresources", match.RequestRule{Resources: []string{"apps/deployments"}}, scale(), false},
		{"subresource", match.RequestRule{Resources: []string{"apps/deployments/scale"}}, scale(), true},
		{"all subresources", match.RequestRule{Resources: []string{"apps/deployments/*"}}, scale(), true},
		{"all resources of a group", match.RequestRule{Resources: []string{"apps/*/*"}}, scale(), true},
		{"all resources", match.RequestRule{Resources: []string{"*/*/*"}}, pod(), true},
		{"a resource as it was sent", match.RequestRule{Resources: []string{"/events"}}, converted, true},
		{"a resource as it was converted", match.RequestRule{Resources: []string{"events.k8s.io/events"}}, converted, false},
		{"operation", match.RequestRule{Operations: []string{"DELETE", "CREATE"}}, pod(), true},
		{"another operation", match.RequestRule{Operations: []string{"DELETE"}}, pod(), false},
		{"extra key", match.RequestRule{ExtraKeys: []string{"break-glass"}}, traced, true},
		{"no extra key", match.RequestRule{ExtraKeys: []string{"break-glass"}}, pod(), false},
		{"CONNECT", match.RequestRule{Operations: []string{"CONNECT"}}, connect, true},
		{"CONNECT, where no operation is named", match.RequestRule{Namespaces: []string{"shop"}}, connect, true},
		{"all fields fit", match.RequestRule{Namespaces: []string{"shop"}, Users: []string{"ada"}, Resources: []string{"/pods"}}, by(pod(), "ada"), true},
		{"one field does not", match.RequestRule{Namespaces: []string{"shop"}, Users: []string{"bob"}, Resources: []string{"/pods"}}, by(pod(), "ada"), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.rule.Name = "r"
			if errs := match.ValidateRequestRules([]match.RequestRule{tt.rule}, field.NewPath("rules"), true); len(errs) > 0 {
				t.Fatal(errs)
			}
			rules := match.CompileRequestRules([]match.RequestRule{{Name: "never", Users: []string{"nobody"}}, tt.rule})
			name, ok := rules.Match(tt.review)
			if ok != tt.want || (name == "r") != tt.want {
				t.Errorf("got %q, %v", name, ok)
			}
			if got := testing.AllocsPerRun(100, func() { rules.Match(tt.review) }); got != 0 {
				t.Errorf("%v allocations", got)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		if name, ok := new(match.RequestRules).Match(pod()); ok {
			t.Errorf("%q selects", name)
		}
	})
}

func TestValidateRequestRules(t *testing.T) {
	tests := []struct {
		name  string
		rules []match.RequestRule
		want  []string
	}{
		{"good", []match.RequestRule{{Name: "a", Users: []string{"ada"}}, {Name: "b", Groups: []string{"ops"}}}, nil},
		{"no name", []match.RequestRule{{Users: []string{"ada"}}}, []string{"FieldValueRequired rules[0].name"}},
		{"the same name", []match.RequestRule{{Name: "a", Users: []string{"ada"}}, {Name: "a", Users: []string{"bob"}}},
			[]string{"FieldValueDuplicate rules[1].name"}},
		{"a rule for every request", []match.RequestRule{{Name: "a"}}, []string{"FieldValueRequired rules[0]"}},
		{"extraKeys", []match.RequestRule{{Name: "a", ExtraKeys: []string{"k"}}}, []string{"FieldValueForbidden rules[0].extraKeys"}},
		{"empty entries", []match.RequestRule{{Name: "a", Namespaces: []string{""}, Users: []string{""}, Groups: []string{"g", ""}}},
			[]string{"FieldValueRequired rules[0].namespaces[0]", "FieldValueRequired rules[0].users[0]", "FieldValueRequired rules[0].groups[1]"}},
		{"service accounts", []match.RequestRule{{Name: "a", ServiceAccounts: []string{"ci/bot", "bot", "*/bot", "/bot", "ci/", "a/b/c"}}},
			[]string{"FieldValueInvalid rules[0].serviceAccounts[1]", "FieldValueInvalid rules[0].serviceAccounts[2]",
				"FieldValueInvalid rules[0].serviceAccounts[3]", "FieldValueInvalid rules[0].serviceAccounts[4]",
				"FieldValueInvalid rules[0].serviceAccounts[5]"}},
		{"resources", []match.RequestRule{{Name: "a", Resources: []string{"/pods", "*/*/*", "pods", "apps/", "/pods/", "a/b/c/d"}}},
			[]string{"FieldValueInvalid rules[0].resources[2]", "FieldValueInvalid rules[0].resources[3]",
				"FieldValueInvalid rules[0].resources[4]", "FieldValueInvalid rules[0].resources[5]"}},
		{"operations", []match.RequestRule{{Name: "a", Operations: []string{"CREATE", "create", "*"}}},
			[]string{"FieldValueNotSupported rules[0].operations[1]", "FieldValueNotSupported rules[0].operations[2]"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, err := range match.ValidateRequestRules(tt.rules, field.NewPath("rules"), false) {
				got = append(got, fmt.Sprintf("%s %s", string(err.Type), err.Field))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDefaultFailOpen(t *testing.T) {
	defaults := match.DefaultFailOpen()
	if errs := match.ValidateRequestRules(defaults, field.NewPath("failOpen"), true); len(errs) > 0 {
		t.Fatal(errs)
	}
	rules := match.CompileRequestRules(defaults)
	const certificates = "certificates.k8s.io"
	requests := func(o codec.Operation, sub string) *codec.Review {
		return reviewOf(o, certificates, "v1", "certificatesigningrequests", sub, "")
	}
	kubelet := func(r *codec.Review) *codec.Review {
		return by(r, "system:node:n1", "system:nodes", "system:authenticated")
	}
	token := func(r *codec.Review) *codec.Review {
		return by(r, "system:bootstrap:abcdef", "system:bootstrappers", "system:authenticated")
	}
	controller := func(r *codec.Review) *codec.Review {
		return by(r, "system:serviceaccount:kube-system:node-controller", "system:serviceaccounts", "system:serviceaccounts:kube-system")
	}
	tests := []struct {
		name   string
		review *codec.Review
		want   string
	}{
		{"a node registers itself", kubelet(reviewOf(codec.Create, "", "v1", "nodes", "", "")), "node-bootstrap"},
		{"a node changes itself", kubelet(reviewOf(codec.Update, "", "v1", "nodes", "", "")), "node-bootstrap"},
		{"a node leaves", kubelet(reviewOf(codec.Delete, "", "v1", "nodes", "", "")), ""},
		{"a node's drivers", kubelet(reviewOf(codec.Create, "storage.k8s.io", "v1", "csinodes", "", "")), "node-bootstrap"},
		{"a first certificate", token(requests(codec.Create, "")), "node-bootstrap"},
		{"a renewed certificate", kubelet(requests(codec.Create, "")), "node-bootstrap"},
		{"a kubelet approves", kubelet(requests(codec.Update, "approval")), ""},
		{"a controller approves", controller(requests(codec.Update, "approval")), "node-controllers"},
		{"a controller signs", controller(requests(codec.Update, "status")), "node-controllers"},
		{"a controller takes a taint off", controller(reviewOf(codec.Update, "", "v1", "nodes", "", "")), "node-controllers"},
		{"a controller writes a pod", controller(reviewOf(codec.Update, "", "v1", "pods", "", "shop")), ""},
		{"a control plane without service accounts", by(requests(codec.Update, "approval"), "system:kube-controller-manager"), "control-plane"},
		{"a kubelet's pod", kubelet(reviewOf(codec.Create, "", "v1", "pods", "", "shop")), ""},
		{"a user's node", by(reviewOf(codec.Create, "", "v1", "nodes", "", ""), "ada"), ""},
		{"a service account of another namespace", by(reviewOf(codec.Update, "", "v1", "nodes", "", ""), "system:serviceaccount:shop:x", "system:serviceaccounts:shop"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, _ := rules.Match(tt.review); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDefaultBypass(t *testing.T) {
	defaults := match.DefaultBypass("admission")
	if errs := match.ValidateRequestRules(defaults, field.NewPath("bypass"), false); len(errs) > 0 {
		t.Fatal(errs)
	}
	rules := match.CompileRequestRules(defaults)
	kubelet := func(r *codec.Review) *codec.Review { return by(r, "system:node:n1", "system:nodes") }
	tests := []struct {
		name   string
		review *codec.Review
		want   string
	}{
		{"a bootstrap role by the API server", by(reviewOf(codec.Create, "rbac.authorization.k8s.io", "v1", "clusterroles", "", ""), "system:apiserver"), "apiserver"},
		{"a bootstrap role by a user", by(reviewOf(codec.Create, "rbac.authorization.k8s.io", "v1", "clusterroles", "", ""), "ada"), ""},
		{"kube-system", reviewOf(codec.Create, "", "v1", "pods", "", "kube-system"), "system-namespaces"},
		{"kube-node-lease", reviewOf(codec.Update, "", "v1", "configmaps", "", "kube-node-lease"), "system-namespaces"},
		{"kube-public", reviewOf(codec.Create, "", "v1", "pods", "", "kube-public"), ""},
		{"leases anywhere", reviewOf(codec.Update, "coordination.k8s.io", "v1", "leases", "", "shop"), "leases"},
		{"leases of another group", reviewOf(codec.Update, "example.com", "v1", "leases", "", "shop"), ""},
		{"node heartbeat", kubelet(reviewOf(codec.Update, "", "v1", "nodes", "status", "")), "node-heartbeats"},
		{"status of a node by a user", by(reviewOf(codec.Update, "", "v1", "nodes", "status", ""), "ada"), ""},
		{"a node by a kubelet", kubelet(reviewOf(codec.Update, "", "v1", "nodes", "", "")), ""},
		{"a pod by a kubelet", kubelet(reviewOf(codec.Create, "", "v1", "pods", "", "shop")), ""},
		{"the dispatcher's namespace", reviewOf(codec.Create, "", "v1", "pods", "", "admission"), "dispatcher-namespace"},
		{"any other namespace", reviewOf(codec.Create, "", "v1", "pods", "", "shop"), ""},
		{"no namespace", reviewOf(codec.Create, "", "v1", "nodes", "", ""), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, _ := rules.Match(tt.review); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	t.Run("without a namespace of its own", func(t *testing.T) {
		for _, r := range match.DefaultBypass("") {
			if r.Name == "dispatcher-namespace" {
				t.Error("there is a rule for it")
			}
		}
	})
}

// A rule with any fields is one, however many they are of which, and is kept as it was
// written.
func TestRuleWithAnyFields(t *testing.T) {
	fields := []func(*match.RequestRule){
		func(r *match.RequestRule) { r.Namespaces = []string{"shop"} },
		func(r *match.RequestRule) { r.Users = []string{"ada"} },
		func(r *match.RequestRule) { r.Groups = []string{"ops"} },
		func(r *match.RequestRule) { r.ServiceAccounts = []string{"ci/*"} },
		func(r *match.RequestRule) { r.Resources = []string{"/pods"} },
		func(r *match.RequestRule) { r.Operations = []string{"CREATE"} },
		func(r *match.RequestRule) { r.ExtraKeys = []string{"break-glass"} },
	}
	for set := 1; set < 1<<len(fields); set++ {
		r := match.RequestRule{Name: "r"}
		for i, field := range fields {
			if set&(1<<i) != 0 {
				field(&r)
			}
		}
		if errs := match.ValidateRequestRules([]match.RequestRule{r}, field.NewPath("rules"), true); len(errs) > 0 {
			t.Errorf("%+v: %v", r, errs)
		}
		rules := match.CompileRequestRules([]match.RequestRule{r, {Name: "other"}})
		if diff := cmp.Diff([]match.RequestRule{r, {Name: "other"}}, rules.Sources()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}
