// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/chain"
)

const (
	appliedSecret = "5e0c1ca6f5d94a0bb3c1a4e1f0aa2f4b71d26a9c"
	nextSecret    = "z2d8f1b7c0e9a3546b8d7f2c1e0a9b8c7d6e5f40"
)

// applied returns what a cluster has that applied the registration, as its API has it: with
// defaults and with what somebody else may have changed about the form.
func applied(t *testing.T, r Registration) Applied {
	t.Helper()
	var text []string
	for _, o := range []any{r.Mutating, r.Validating} {
		data, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, string(data))
	}
	a, err := ReadApplied([]byte(strings.Join(text, "---\n")), false)
	if err != nil || a.Mutating == nil || a.Validating == nil {
		t.Fatal(a, err)
	}
	for i := range a.Validating.Webhooks {
		w := &a.Validating.Webhooks[i]
		if w.NamespaceSelector == nil {
			w.NamespaceSelector = &metav1.LabelSelector{}
		}
		if w.ObjectSelector == nil {
			w.ObjectSelector = &metav1.LabelSelector{}
		}
		for j := range w.Rules {
			if w.Rules[j].Scope == nil {
				w.Rules[j].Scope = new(admissionregistrationv1.AllScopes)
			}
			slices.Reverse(w.Rules[j].Operations)
			slices.Reverse(w.Rules[j].Resources)
		}
		slices.Reverse(w.MatchConditions)
	}
	slices.Reverse(a.Validating.Webhooks) // their order says nothing
	return a
}

// What does not change what is called, and when, is no difference; what does is one, at its
// field.
func TestDifferences(t *testing.T) {
	c, made := both(t)
	if d := made.Differences(c, applied(t, made)); len(d) > 0 {
		t.Fatalf("what was applied differs: %v", d)
	}
	enforce := func(a Applied) {
		for i := range a.Validating.Webhooks {
			s := a.Validating.Webhooks[i].NamespaceSelector
			s.MatchExpressions = append(s.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist},
				metav1.LabelSelectorRequirement{Key: "kubernetes.azure.com/managedby", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"aks"}})
		}
	}
	for _, tt := range []struct {
		name, want string
		change     func(a *Applied)
	}{
		{"enforced terms", "", func(a *Applied) { enforce(*a) }},
		{"labels and annotations of others", "", func(a *Applied) {
			a.Mutating.Labels, a.Mutating.Annotations = map[string]string{"team": "a"}, map[string]string{"x": "y"}
		}},
		{"a term of nobody's", "namespaceSelector", func(a *Applied) {
			s := a.Validating.Webhooks[0].NamespaceSelector
			s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: "control-plane", Operator: metav1.LabelSelectorOpExists})
		}},
		{"failurePolicy", "failurePolicy", func(a *Applied) {
			a.Validating.Webhooks[0].FailurePolicy = new(admissionregistrationv1.FailurePolicyType("Other"))
		}},
		{"a missing failurePolicy is Fail", "failurePolicy", func(a *Applied) {
			for i := range a.Validating.Webhooks {
				a.Validating.Webhooks[i].FailurePolicy = nil
			}
		}},
		{"matchPolicy", "matchPolicy", func(a *Applied) {
			a.Mutating.Webhooks[0].MatchPolicy = new(admissionregistrationv1.MatchPolicyType("Other"))
		}},
		{"timeout", "timeoutSeconds", func(a *Applied) { a.Mutating.Webhooks[0].TimeoutSeconds = new(int32(3)) }},
		{"caBundle", "clientConfig.caBundle", func(a *Applied) { a.Mutating.Webhooks[0].ClientConfig.CABundle = []byte("-----BEGIN other") }},
		{"url", "clientConfig", func(a *Applied) { a.Mutating.Webhooks[0].ClientConfig.URL = new("https://elsewhere.example.com/") }},
		{"a Service in place of a URL", "clientConfig", func(a *Applied) {
			a.Mutating.Webhooks[0].ClientConfig.URL = nil
			a.Mutating.Webhooks[0].ClientConfig.Service = &admissionregistrationv1.ServiceReference{Namespace: "a", Name: "b"}
		}},
		{"a rule", "rules", func(a *Applied) { a.Validating.Webhooks[0].Rules = a.Validating.Webhooks[0].Rules[1:] }},
		{"an operation", "rules", func(a *Applied) {
			a.Validating.Webhooks[0].Rules[0].Operations = []admissionregistrationv1.OperationType{"OTHER"}
		}},
		{"scope", "rules", func(a *Applied) {
			a.Validating.Webhooks[0].Rules[0].Scope = new(admissionregistrationv1.ScopeType("Other"))
		}},
		{"objectSelector", "objectSelector", func(a *Applied) {
			a.Mutating.Webhooks[0].ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}},
		{"a condition", "matchConditions", func(a *Applied) {
			a.Validating.Webhooks[0].MatchConditions = append(a.Validating.Webhooks[0].MatchConditions, admissionregistrationv1.MatchCondition{Name: "other", Expression: "true"})
		}},
		{"sideEffects", "sideEffects", func(a *Applied) { a.Validating.Webhooks[0].SideEffects = nil }},
		{"versions", "admissionReviewVersions", func(a *Applied) { a.Validating.Webhooks[0].AdmissionReviewVersions = []string{"v1beta1"} }},
		{"reinvocation", "reinvocationPolicy", func(a *Applied) {
			a.Mutating.Webhooks[0].ReinvocationPolicy = new(admissionregistrationv1.IfNeededReinvocationPolicy)
		}},
		{"a webhook that is gone", "webhooks[", func(a *Applied) { a.Mutating.Webhooks = a.Mutating.Webhooks[1:] }},
		{"one more webhook", "webhooks[other]", func(a *Applied) {
			a.Validating.Webhooks = append(a.Validating.Webhooks, admissionregistrationv1.ValidatingWebhook{Name: "other"})
		}},
		{"no object", "MutatingWebhookConfiguration/admission-dispatcher: applied nothing, printed an object", func(a *Applied) { a.Mutating = nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := applied(t, made)
			tt.change(&a)
			var got []string
			for _, d := range made.Differences(c, a) {
				got = append(got, d.String())
			}
			if text := strings.Join(got, "\n"); (tt.want == "") != (text == "") || !strings.Contains(text, tt.want) {
				t.Errorf("differences %q, want one of %q", text, tt.want)
			}
		})
	}
}

// Mutating webhooks are called in order, so another order is a difference.
func TestDifferentOrder(t *testing.T) {
	c := objectPair{kind: "MutatingWebhookConfiguration", cluster: &chain.Cluster{}, ordered: true}
	list := []admissionregistrationv1.MutatingWebhook{{Name: "a"}, {Name: "b"}}
	c.wants(metav1.ObjectMeta{}, list)
	c.has(metav1.ObjectMeta{}, []admissionregistrationv1.MutatingWebhook{list[1], list[0]})
	if d := c.differences(nil); len(d) != 1 || d[0].Field != "webhooks" {
		t.Errorf("differences %v", d)
	}
}

// A path secret of the Cluster, whichever, is what the placeholder stands for. Another one
// is a difference, and no difference shows one.
func TestDifferencesOfPathSecrets(t *testing.T) {
	c, _ := both(t)
	c.Credentials = chain.Credentials{PathSecrets: []chain.PathSecretSum{chain.SumOfPathSecret([]byte(appliedSecret)), chain.SumOfPathSecret([]byte(nextSecret))}}
	register := func(secret string) Registration {
		made, err := New(c, Options{URL: "https://dispatcher.example.com:8443", PathSecret: secret})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	unfilled := register("")
	if url := *unfilled.Validating.Webhooks[0].ClientConfig.URL; !strings.Contains(url, "/v1/clusters/"+c.Name+"/"+PathSecretPlaceholder+"/validate") {
		t.Errorf("url %s", url)
	}
	for secret, differs := range map[string]bool{appliedSecret: false, nextSecret: false, strings.Repeat("0123456789", 4): true, "short": true, PathSecretPlaceholder: false} {
		for _, printed := range []Registration{unfilled, register(appliedSecret)} {
			text := fmt.Sprint(printed.Differences(c, applied(t, register(secret))))
			if differs != (text != "[]") || strings.Contains(text, secret) && secret != PathSecretPlaceholder || strings.Contains(text, appliedSecret) {
				t.Errorf("A23 with %s: %s", secret, text)
			}
		}
	}
	c.Credentials = chain.Credentials{Certificate: true, PathSecrets: c.Credentials.PathSecrets}
	if url := *register("").Validating.Webhooks[0].ClientConfig.URL; strings.Contains(url, "SECRET") {
		t.Errorf("a cluster with a certificate registers %s", url)
	}
}

// Among objects of a cluster those of the registration are found, in lists and streams.
func TestReadApplied(t *testing.T) {
	const list = `{"apiVersion":"v1","kind":"List","items":[
{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration","metadata":{"name":"admission-dispatcher"},"webhooks":[{"name":"a"}]},
{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"other"}}]}`
	found, err := ReadApplied([]byte("---\n\n---\n"+list), false)
	if err != nil || found.Mutating == nil || len(found.Mutating.Webhooks) != 1 || found.Validating != nil {
		t.Errorf("%+v, %v", found, err)
	}
	if found, err := ReadApplied([]byte(list), true); err != nil || found.Mutating != nil {
		t.Errorf("static: %+v, %v", found, err)
	}
	for _, broken := range []string{"a: [", `{"items": 3}`, "- a"} {
		if found, err := ReadApplied([]byte(broken), false); err == nil {
			t.Errorf("%q: %+v", broken, found)
		}
	}
}

// What is printed for a platform has its steps and obstacles, and says of Autopilot
// whether it would refuse the rules.
func TestPlatforms(t *testing.T) {
	c, _ := both(t)
	const wide = "Autopilot refuses what is below"
	for _, name := range Platforms() {
		p := PlatformOf(name)
		made, err := New(c, Options{URL: "https://dispatcher.example.com:8443", Platform: p})
		if err != nil {
			t.Fatal(err)
		}
		text, err := made.YAML(c)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(p.steps + p.obstacles) {
			if !strings.Contains(string(text), "#   "+line) {
				t.Errorf("%s: there is no %q in\n%s", name, line, text)
			}
		}
		if has := made.Validating.Annotations["admissions.enforcer/disabled"] == "true"; has != (name == "aks") {
			t.Errorf("%s: annotations %v", name, made.Validating.Annotations)
		}
		if strings.Contains(string(text), wide) {
			t.Errorf("%s: refuses rules that are not wide", name)
		}
		made.entries[chain.Validating][0].rules = []admissionregistrationv1.RuleWithOperations{{Rule: admissionregistrationv1.Rule{APIGroups: []string{"*"}, Resources: []string{"*/*"}}}}
		if text, _ := made.YAML(c); strings.Contains(string(text), wide) != (name == "gke") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if PlatformOf("abroad") != nil {
		t.Error("a platform that is none")
	}
}
