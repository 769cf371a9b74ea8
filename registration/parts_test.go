// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/exempt"
)

// Lists are written sorted and each value once, whatever order the manifests have, and
// the manifests' own stay as they are.
func TestListsAreSortedCopies(t *testing.T) {
	given := []string{"pods", "*/status", "*", "pods", "deployments"}
	before := slices.Clone(given)
	for name, c := range map[string]struct{ got, want []string }{
		"values":             {reduced([]string{"b", "a", "b"}), []string{"a", "b"}},
		"any value":          {reduced(given), []string{"*"}},
		"resources":          {reducedResources(given), []string{"*", "*/status", "deployments", "pods"}},
		"everything":         {reducedResources([]string{"pods", "*/*"}), []string{"*/*"}},
		"what is never said": {reduced([]string{}), []string{}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %q, want %q", name, c.got, c.want)
		}
	}
	values := []string{"b", "a", "b"}
	if got := list(values); got != `["a", "b", "b"]` {
		t.Errorf("a list is %s", got)
	}
	reduced(values)
	if !slices.Equal(given, before) || !slices.Equal(values, []string{"b", "a", "b"}) {
		t.Errorf("the manifests have %q and %q now", given, values)
	}
}

// What a rule's resources cover, one by one.
func TestCoveredResources(t *testing.T) {
	for _, c := range []struct {
		list, wanted string
		covers       bool
	}{
		{"pods", "pods", true}, {"pods", "pods/status", false}, {"pods", "*", false},
		{"*", "pods", true}, {"*", "pods/status", false}, {"*", "*/*", false},
		{"*/*", "pods", true}, {"*/*", "pods/status", true}, {"*/*", "pods/*", true}, {"*/*", "*", true},
		{"pods/*", "pods", true}, {"pods/*", "pods/status", true}, {"pods/*", "nodes/status", false},
		{"*/status", "pods/status", true}, {"*/status", "pods/exec", false}, {"*/status", "pods/*", false}, {"*/status", "pods", false},
		{"pods/status", "*/status", false}, {"pods nodes", "nodes pods", true}, {"pods nodes", "nodes services", false},
	} {
		if got := coversResources(strings.Fields(c.list), strings.Fields(c.wanted)); got != c.covers {
			t.Errorf("%s covers %s: %t", c.list, c.wanted, got)
		}
	}
}

// A rule of any scope covers each of them, and one of a scope only the same.
func TestCoveredScopes(t *testing.T) {
	of := func(s admissionregistrationv1.ScopeType) *admissionregistrationv1.RuleWithOperations {
		r := anything()
		r.Scope = &s
		return &r
	}
	scopes := []admissionregistrationv1.ScopeType{admissionregistrationv1.AllScopes, admissionregistrationv1.ClusterScope, admissionregistrationv1.NamespacedScope}
	for _, a := range scopes {
		for _, b := range scopes {
			if got := covers(of(a), of(b)); got != (a == b || a == admissionregistrationv1.AllScopes) {
				t.Errorf("%s covers %s: %t", a, b, got)
			}
		}
	}
}

// Two ways to write one selector are one list of requirements.
func TestRequirements(t *testing.T) {
	in := func(key string, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values}
	}
	want := requirements{in("a", "1"), in("b", "1", "2"), in("c", "3")}
	got := requirementsOf(&metav1.LabelSelector{
		MatchLabels:      map[string]string{"c": "3", "a": "1"},
		MatchExpressions: []metav1.LabelSelectorRequirement{in("b", "2", "1", "2"), in("a", "1")},
	})
	if got.key() != want.key() {
		t.Errorf("%v, want %v", got, want)
	}
	if got := (requirements{in("c", "3")}).and(in("b", "1", "2"), in("a", "1"), in("c", "3")); got.key() != want.key() {
		t.Errorf("together %v, want %v", got, want)
	}
	if got := requirementsOf(nil); len(got) > 0 {
		t.Errorf("no selector is %v", got)
	}
}

// A webhook that fails closed claims all that its part selects where its rules do, in
// every namespace and for every object. Of versions only matchPolicy Exact makes a
// difference: what the API server converts for others it does not want.
func TestClaimsAll(t *testing.T) {
	of := func(version, resource string) []admissionregistrationv1.RuleWithOperations {
		r := anything()
		r.APIGroups, r.APIVersions, r.Resources = []string{"x"}, []string{version}, []string{resource}
		return []admissionregistrationv1.RuleWithOperations{normalized(&r)}
	}
	named := requirements{{Key: metadataName, Operator: metav1.LabelSelectorOpIn, Values: []string{"shop"}}}
	owned := requirements{{Key: "owner", Operator: metav1.LabelSelectorOpExists}}
	exact, equivalent := admissionregistrationv1.Exact, admissionregistrationv1.Equivalent
	for i, tt := range []struct {
		part   admissionregistrationv1.MatchPolicyType
		rules  []admissionregistrationv1.RuleWithOperations // of the part
		claim  claim
		claims bool
	}{
		{equivalent, of("v1", "things"), claim{rules: of("v1", "things")}, true},
		{equivalent, of("v1", "things"), claim{rules: of("v2", "things")}, true}, // converted
		{equivalent, of("v1", "*"), claim{rules: of("v1", "things")}, false},
		{equivalent, of("v1", "things"), claim{rules: of("v1", "*")}, true},
		{equivalent, slices.Concat(of("v1", "things"), of("v1", "others")), claim{rules: of("v1", "things")}, false},
		{equivalent, slices.Concat(of("v1", "things"), of("v1", "others")), claim{rules: slices.Concat(of("v1", "others"), of("v1", "things"))}, true},
		{exact, of("v1", "things"), claim{exact: true, rules: of("v1", "things")}, true},
		{exact, of("v1", "things"), claim{exact: true, rules: of("v2", "things")}, false},
		{exact, of("*", "things"), claim{exact: true, rules: of("v1", "things")}, false},
		{equivalent, of("v1", "things"), claim{exact: true, rules: of("v1", "things")}, false}, // another version comes converted
		{equivalent, of("v1", "things"), claim{exact: true, rules: of("*", "things")}, true},
		{equivalent, of("v1", "*"), claim{exact: true, rules: of("*", "things")}, false},
		{equivalent, of("v1", "things"), claim{rules: of("v1", "things"), names: named}, false},
		{equivalent, of("v1", "things"), claim{rules: of("v1", "things"), objects: owned}, false},
		{equivalent, of("v1", "things"), claim{rules: of("v1", "things"), names: named, objects: owned}, false},
	} {
		p := &part{matchPolicy: tt.part, rules: tt.rules}
		if got := tt.claim.text(p); (got == always) != tt.claims {
			t.Errorf("claim %d is said as %s", i, got)
		}
	}
}

// Rules of any resource are about Namespaces, too.
func TestMayBeOfNamespaces(t *testing.T) {
	for resources, want := range map[string]bool{
		"namespaces": true, "namespaces/status": true, "*": true, "*/*": true, "*/status": true, "pods namespaces": true, "pods": false, "pods/*": false,
	} {
		r := anything()
		r.Resources = strings.Fields(resources)
		if got := (&part{rules: []admissionregistrationv1.RuleWithOperations{r}}).mayBeOfNamespaces(); got != want {
			t.Errorf("%s: %t", resources, got)
		}
	}
}

// What decides nothing is not said.
func TestTerms(t *testing.T) {
	for got, want := range map[string]string{
		allOf(): always, allOf("a"): "a", allOf(always, "a"): "a", allOf("a", never): never, allOf("a", "b"): "(a) && (b)",
		anyOf(): never, anyOf("b"): "b", anyOf(never, "c"): "c", anyOf("a", always): always, anyOf("a", "b"): "(a) || (b)",
		negation(always): never, negation(never): always, negation("a"): "!(a)",
		anyResource([]string{"pods/status"}): resource("pods/status"),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// What webhooks of matchPolicy Exact list comes last, in whatever order they stand.
func TestExactComesLast(t *testing.T) {
	of := func(version string) []admissionregistrationv1.RuleWithOperations {
		r := anything()
		r.APIVersions = []string{version}
		return []admissionregistrationv1.RuleWithOperations{r}
	}
	hooks := append(hooksOf(t, admissionregistrationv1.Exact, of("v1")), hooksOf(t, admissionregistrationv1.Equivalent, of("v2"))...)
	var versions []string
	for _, r := range union(hooks) {
		versions = append(versions, r.APIVersions...)
	}
	if !slices.Equal(versions, []string{"v2", "v1"}) {
		t.Errorf("rules of versions %q", versions)
	}
}

// A rule looks at namespaces alone if it has some and nothing else.
func TestOnlyNamespaces(t *testing.T) {
	a := []string{"a"}
	for i, c := range []struct {
		rule exempt.Rule
		only bool
	}{
		{exempt.Rule{}, false},
		{exempt.Rule{Namespaces: a}, true},
		{exempt.Rule{Users: a}, false},
		{exempt.Rule{Namespaces: a, Users: a, Groups: a}, false},
		{exempt.Rule{Namespaces: a, Users: a, Groups: a, ServiceAccounts: a}, false},
		{exempt.Rule{Namespaces: a, Groups: a, Resources: a}, false},
		{exempt.Rule{Namespaces: a, Users: []string{"a", "b"}, Operations: a, ExtraKeys: a}, false},
		{exempt.Rule{Namespaces: a, ExtraKeys: a}, false},
	} {
		if got := onlyNamespaces(&c.rule); got != c.only {
			t.Errorf("rule %d: %t", i, got)
		}
	}
}

// What is printed says what it is for, and what the reader must do.
func TestPrintedComments(t *testing.T) {
	for text, want := range map[string][]string{
		string(RBAC("", nil)): {"# Lets the admission dispatcher read the namespaces", "# get: a namespace that the watch has not brought yet", "#   kubectl --namespace admission-dispatcher create token"},
		string(Stream(Caller(&chain.Cluster{Credentials: chain.Credentials{Certificate: true}}, "d.example.com", false))): {"# The file of kube-apiserver's --admission-control-config-file.", "# /etc/kubernetes/admission-dispatcher/kubeconfig: the credential"},
	} {
		for _, comment := range want {
			if !strings.Contains(text, comment) {
				t.Errorf("there is no %q in\n%s", comment, text)
			}
		}
	}
	c, made := both(t)
	text, err := made.YAML(c)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n---\n"); n != 1 {
		t.Errorf("%d documents in\n%s", n+1, text)
	}
	if !strings.Contains(string(text), fmt.Sprintf("timeoutSeconds: %d is a guess", 10)) {
		t.Errorf("it does not say what is a guess:\n%s", text)
	}
}
