// SPDX-License-Identifier: Apache-2.0

package exempt_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/exempt"
)

// by makes ada, or a service account, the user of a review.
func by(r *codec.Review, username string, groups ...string) *codec.Review {
	r.User.Username = []byte(username)
	for _, g := range groups {
		r.User.Groups = append(r.User.Groups, []byte(g))
	}
	return r
}

func TestRules(t *testing.T) {
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
		rule   exempt.Rule
		review *codec.Review
		want   bool
	}{
		{"namespace", exempt.Rule{Namespaces: []string{"lab", "shop"}}, pod(), true},
		{"another namespace", exempt.Rule{Namespaces: []string{"lab"}}, pod(), false},
		{"B14 the object's namespace does not count", exempt.Rule{Namespaces: []string{"kube-system"}}, elsewhere, false},
		{"user", exempt.Rule{Users: []string{"ada"}}, by(pod(), "ada"), true},
		{"another user", exempt.Rule{Users: []string{"ada"}}, by(pod(), "bob"), false},
		{"no user", exempt.Rule{Users: []string{"ada"}}, pod(), false},
		{"one of the groups", exempt.Rule{Groups: []string{"ops"}}, by(pod(), "ada", "dev", "ops"), true},
		{"no group", exempt.Rule{Groups: []string{"ops"}}, by(pod(), "ops"), false},
		{"service account", exempt.Rule{ServiceAccounts: []string{"ci/deployer"}}, robot, true},
		{"all of a namespace", exempt.Rule{ServiceAccounts: []string{"ci/*"}}, robot, true},
		{"another of the namespace", exempt.Rule{ServiceAccounts: []string{"ci/deploy"}}, robot, false},
		{"of another namespace", exempt.Rule{ServiceAccounts: []string{"c/*"}}, robot, false},
		{"a user who is no service account", exempt.Rule{ServiceAccounts: []string{"ci/*"}}, by(pod(), "ci:deployer"), false},
		{"a name cut short", exempt.Rule{ServiceAccounts: []string{"ci/*"}}, by(pod(), "system:serviceaccount:ci"), false},
		{"core resource", exempt.Rule{Resources: []string{"/pods"}}, pod(), true},
		{"resource of another group", exempt.Rule{Resources: []string{"apps/pods"}}, pod(), false},
		{"a resource without its subresources", exempt.Rule{Resources: []string{"apps/deployments"}}, scale(), false},
		{"subresource", exempt.Rule{Resources: []string{"apps/deployments/scale"}}, scale(), true},
		{"all subresources", exempt.Rule{Resources: []string{"apps/deployments/*"}}, scale(), true},
		{"all resources of a group", exempt.Rule{Resources: []string{"apps/*/*"}}, scale(), true},
		{"all resources", exempt.Rule{Resources: []string{"*/*/*"}}, pod(), true},
		{"a resource as it was sent", exempt.Rule{Resources: []string{"/events"}}, converted, true},
		{"a resource as it was converted", exempt.Rule{Resources: []string{"events.k8s.io/events"}}, converted, false},
		{"operation", exempt.Rule{Operations: []string{"DELETE", "CREATE"}}, pod(), true},
		{"another operation", exempt.Rule{Operations: []string{"DELETE"}}, pod(), false},
		{"extra key", exempt.Rule{ExtraKeys: []string{"break-glass"}}, traced, true},
		{"no extra key", exempt.Rule{ExtraKeys: []string{"break-glass"}}, pod(), false},
		{"CONNECT", exempt.Rule{Operations: []string{"CONNECT"}}, connect, true},
		{"CONNECT, where no operation is named", exempt.Rule{Namespaces: []string{"shop"}}, connect, true},
		{"all fields fit", exempt.Rule{Namespaces: []string{"shop"}, Users: []string{"ada"}, Resources: []string{"/pods"}}, by(pod(), "ada"), true},
		{"one field does not", exempt.Rule{Namespaces: []string{"shop"}, Users: []string{"bob"}, Resources: []string{"/pods"}}, by(pod(), "ada"), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.rule.Name = "r"
			if errs := exempt.Validate([]exempt.Rule{tt.rule}, field.NewPath("rules"), true); len(errs) > 0 {
				t.Fatal(errs)
			}
			rules := exempt.Compile([]exempt.Rule{{Name: "never", Users: []string{"nobody"}}, tt.rule})
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
		if name, ok := new(exempt.Rules).Match(pod()); ok {
			t.Errorf("%q selects", name)
		}
	})
}

func TestValidate(t *testing.T) {
	tests := []struct {
		name  string
		rules []exempt.Rule
		want  []string
	}{
		{"good", []exempt.Rule{{Name: "a", Users: []string{"ada"}}, {Name: "b", Groups: []string{"ops"}}}, nil},
		{"no name", []exempt.Rule{{Users: []string{"ada"}}}, []string{"FieldValueRequired rules[0].name"}},
		{"the same name", []exempt.Rule{{Name: "a", Users: []string{"ada"}}, {Name: "a", Users: []string{"bob"}}},
			[]string{"FieldValueDuplicate rules[1].name"}},
		{"a rule for every request", []exempt.Rule{{Name: "a"}}, []string{"FieldValueRequired rules[0]"}},
		{"extraKeys", []exempt.Rule{{Name: "a", ExtraKeys: []string{"k"}}}, []string{"FieldValueForbidden rules[0].extraKeys"}},
		{"empty entries", []exempt.Rule{{Name: "a", Namespaces: []string{""}, Users: []string{""}, Groups: []string{"g", ""}}},
			[]string{"FieldValueRequired rules[0].namespaces[0]", "FieldValueRequired rules[0].users[0]", "FieldValueRequired rules[0].groups[1]"}},
		{"service accounts", []exempt.Rule{{Name: "a", ServiceAccounts: []string{"ci/bot", "bot", "*/bot", "/bot", "ci/", "a/b/c"}}},
			[]string{"FieldValueInvalid rules[0].serviceAccounts[1]", "FieldValueInvalid rules[0].serviceAccounts[2]",
				"FieldValueInvalid rules[0].serviceAccounts[3]", "FieldValueInvalid rules[0].serviceAccounts[4]",
				"FieldValueInvalid rules[0].serviceAccounts[5]"}},
		{"resources", []exempt.Rule{{Name: "a", Resources: []string{"/pods", "*/*/*", "pods", "apps/", "/pods/", "a/b/c/d"}}},
			[]string{"FieldValueInvalid rules[0].resources[2]", "FieldValueInvalid rules[0].resources[3]",
				"FieldValueInvalid rules[0].resources[4]", "FieldValueInvalid rules[0].resources[5]"}},
		{"operations", []exempt.Rule{{Name: "a", Operations: []string{"CREATE", "create", "*"}}},
			[]string{"FieldValueNotSupported rules[0].operations[1]", "FieldValueNotSupported rules[0].operations[2]"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, err := range exempt.Validate(tt.rules, field.NewPath("rules"), false) {
				got = append(got, fmt.Sprintf("%s %s", string(err.Type), err.Field))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDefaultFailOpen(t *testing.T) {
	defaults := exempt.DefaultFailOpen()
	if errs := exempt.Validate(defaults, field.NewPath("failOpen"), true); len(errs) > 0 {
		t.Fatal(errs)
	}
	rules := exempt.Compile(defaults)
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
	defaults := exempt.DefaultBypass("admission")
	if errs := exempt.Validate(defaults, field.NewPath("bypass"), false); len(errs) > 0 {
		t.Fatal(errs)
	}
	rules := exempt.Compile(defaults)
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
		for _, r := range exempt.DefaultBypass("") {
			if r.Name == "dispatcher-namespace" {
				t.Error("there is a rule for it")
			}
		}
	})
}

// A rule with any fields is one, however many they are of which, and is kept as it was
// written.
func TestRuleWithAnyFields(t *testing.T) {
	fields := []func(*exempt.Rule){
		func(r *exempt.Rule) { r.Namespaces = []string{"shop"} },
		func(r *exempt.Rule) { r.Users = []string{"ada"} },
		func(r *exempt.Rule) { r.Groups = []string{"ops"} },
		func(r *exempt.Rule) { r.ServiceAccounts = []string{"ci/*"} },
		func(r *exempt.Rule) { r.Resources = []string{"/pods"} },
		func(r *exempt.Rule) { r.Operations = []string{"CREATE"} },
		func(r *exempt.Rule) { r.ExtraKeys = []string{"break-glass"} },
	}
	for set := 1; set < 1<<len(fields); set++ {
		r := exempt.Rule{Name: "r"}
		for i, field := range fields {
			if set&(1<<i) != 0 {
				field(&r)
			}
		}
		if errs := exempt.Validate([]exempt.Rule{r}, field.NewPath("rules"), true); len(errs) > 0 {
			t.Errorf("%+v: %v", r, errs)
		}
		rules := exempt.Compile([]exempt.Rule{r, {Name: "other"}})
		if diff := cmp.Diff([]exempt.Rule{r, {Name: "other"}}, rules.Sources()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}
