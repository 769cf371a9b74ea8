// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/lint"
)

// linted is the registration as package lint sees it.
func linted(r Registration) (list []lint.Configuration) {
	if m := r.Mutating; m != nil {
		list = append(list, lint.Configuration{Object: "MutatingWebhookConfiguration/" + m.Name, Name: m.Name, Mutating: true, Webhooks: m.Webhooks})
	}
	if v := r.Validating; v != nil {
		c := lint.Configuration{Object: "ValidatingWebhookConfiguration/" + v.Name, Name: v.Name}
		for i := range v.Webhooks {
			w := &v.Webhooks[i]
			c.Webhooks = append(c.Webhooks, admissionregistrationv1.MutatingWebhook{
				Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
				NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, MatchConditions: w.MatchConditions,
				SideEffects: w.SideEffects, TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions,
			})
		}
		list = append(list, c)
	}
	return list
}

// withDefaults gives the cluster the built-in bypass and failOpen rules, and others.
func withDefaults(c *chain.Cluster, bypass, failOpen []exempt.Rule) {
	c.Bypass = exempt.Compile(append(exempt.DefaultBypass("dispatcher"), bypass...))
	c.FailOpen = exempt.Compile(append(exempt.DefaultFailOpen(), failOpen...))
}

// The linter has nothing to say about what is registered here, whatever the webhooks are
// and select, as long as the built-in bypass rules hold.
func TestLintOfRegistrations(t *testing.T) {
	closed := 0
	for seed := range 40 {
		d := diceOf(seed)
		w := d.world(t)
		withDefaults(w.cluster, d.requestRules(pick(d, 0, 1, 3), false), d.requestRules(pick(d, 0, 0, 2), true))
		for _, static := range []bool{false, true} {
			r, err := New(w.cluster, Options{URL: "https://d.example.com", Static: static})
			if err != nil {
				t.Fatal(err)
			}
			in := lint.Input{Configurations: linted(r), Generated: linted(r), Tier: &lint.Tier{Namespaces: []string{"dispatcher"}}, Registered: map[string]bool{"c/a.example.com": true}}
			for _, c := range in.Configurations {
				for i := range c.Webhooks {
					if *c.Webhooks[i].FailurePolicy == admissionregistrationv1.Fail {
						closed++
					}
				}
			}
			for _, f := range lint.Check(in) {
				t.Errorf("seed %d, static %t: %s %s %s %q: %s %v", seed, static, f.Rule.ID, f.Level, f.At, f.Value, f.Text, f.Stops)
			}
		}
	}
	if closed < 50 {
		t.Errorf("only %d entries fail closed", closed)
	}
}

// catchAll is a cluster with a webhook of each phase that wants everything and fails
// closed, and its registration.
func catchAll(t *testing.T, bypass []exempt.Rule) (*chain.Cluster, []lint.Configuration) {
	t.Helper()
	mutating, validating := configurations()
	w := diceOf(1).webhook(0)
	w.Rules, w.NamespaceSelector, w.ObjectSelector, w.FailurePolicy = []admissionregistrationv1.RuleWithOperations{anything()}, nil, nil, new(admissionregistrationv1.Fail)
	mutating.Webhooks = append(mutating.Webhooks, w)
	validating.Webhooks = append(validating.Webhooks, validatingOf(&w))
	c := compiled(t, mutating, validating)
	c.Bypass, c.FailOpen = exempt.Compile(bypass), exempt.Compile(exempt.DefaultFailOpen())
	r, err := New(c, Options{URL: "https://d.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	return c, linted(r)
}

func findings(in lint.Input) (list []string) {
	for _, f := range lint.Check(in) {
		list = append(list, f.Rule.ID+" "+string(f.Level)+": "+f.Text)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func wantFinding(t *testing.T, in lint.Input, want string) {
	t.Helper()
	got := findings(in)
	if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) {
		t.Errorf("%q, want one of %q", got, want)
	}
}

// Without the built-in rules a registration is what the linter is for.
func TestLintWithoutTheBuiltInRules(t *testing.T) {
	_, made := catchAll(t, nil)
	in := lint.Input{Configurations: made, Tier: &lint.Tier{Namespaces: []string{"dispatcher"}}}
	for _, want := range []string{"W1 error", "W2 warning", "W3 warning", "W8 error: wants what the API server writes", "W9 error: runs the dispatcher"} {
		wantFinding(t, in, want)
	}
	_, made = catchAll(t, exempt.DefaultBypass(""))
	if got := findings(lint.Input{Configurations: made}); got != nil {
		t.Errorf("with them: %q", got)
	}
	wantFinding(t, lint.Input{Configurations: made, Tier: &lint.Tier{Namespaces: []string{"dispatcher"}}}, "W9 error: runs the dispatcher")
	wantFinding(t, lint.Input{Configurations: made, Tier: &lint.Tier{}}, "W9 error: the cluster hosts the dispatcher, and no namespace")
	for _, rule := range exempt.DefaultBypass("") {
		rest := slices.DeleteFunc(exempt.DefaultBypass(""), func(r exempt.Rule) bool { return r.Name == rule.Name })
		_, made := catchAll(t, rest)
		got := findings(lint.Input{Configurations: made})
		if (len(got) == 0) != (rule.Name == "leases") { // which are in the system namespaces, too
			t.Errorf("without rule %s: %q", rule.Name, got)
		}
	}
}

// W8: what the cluster has is compared with what it should have.
func TestLintOfWhatIsCurrent(t *testing.T) {
	for name, c := range map[string]struct {
		change func(in *lint.Input)
		want   string
	}{
		"the same":       {func(*lint.Input) {}, ""},
		"not registered": {func(in *lint.Input) { in.Configurations = in.Configurations[1:] }, "W8 error: is not registered"},
		"an entry less":  {func(in *lint.Input) { of(in).Webhooks = of(in).Webhooks[1:] }, "W8 error: is missing"},
		"an entry more":  {func(in *lint.Input) { in.Generated[0].Webhooks = in.Generated[0].Webhooks[1:] }, "W8 error: would not be registered now"},
		"another rule": {func(in *lint.Input) {
			entryOf(in).Rules[0].Operations = []admissionregistrationv1.OperationType{"CREATE"}
		}, "W8 error: is not what would be registered"},
		"another policy":   {func(in *lint.Input) { entryOf(in).FailurePolicy = new(admissionregistrationv1.Ignore) }, "W8 error: is not what would be registered"},
		"a condition less": {func(in *lint.Input) { entryOf(in).MatchConditions = entryOf(in).MatchConditions[1:] }, "W8 error: is not what would be registered"},
		"another timeout":  {func(in *lint.Input) { entryOf(in).TimeoutSeconds = new(int32(3)) }, "W8 error: is not what would be registered"},
		"defaults of the API": {func(in *lint.Input) {
			e := entryOf(in)
			e.ReinvocationPolicy, e.ObjectSelector = nil, &metav1.LabelSelector{}
			e.Rules[0].Scope = new(admissionregistrationv1.AllScopes)
		}, ""},
		"what a managed cloud adds": {func(in *lint.Input) {
			e := entryOf(in)
			e.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist}}}
		}, ""},
		"what somebody else adds": {func(in *lint.Input) {
			e := entryOf(in)
			e.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "mine", Operator: metav1.LabelSelectorOpDoesNotExist}}}
		}, "W8 error: is not what would be registered"},
		"called twice": {func(in *lint.Input) {
			in.Registered = map[string]bool{"kyverno/validate.kyverno.svc": true}
			in.Configurations = append(in.Configurations, lint.Configuration{Name: "kyverno", Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "validate.kyverno.svc", SideEffects: new(admissionregistrationv1.SideEffectClassNone)}}})
		}, "W8 error: is called by the dispatcher, too"},
		"an extension server that is no caller": {func(in *lint.Input) {
			in.Callers = map[string]bool{"wardle.example.io": true}
			in.APIServices = []lint.APIService{{Name: "v1.wardle.example.io", Group: "wardle.example.io"}, {Name: "v1.metrics.example.io", Group: "metrics.example.io"}}
		}, "W8 warning: is served by"},
	} {
		t.Run(name, func(t *testing.T) {
			_, made := catchAll(t, exempt.DefaultBypass(""))
			_, again := catchAll(t, exempt.DefaultBypass(""))
			in := lint.Input{Configurations: made, Generated: again}
			c.change(&in)
			if got := findings(in); c.want == "" && got != nil {
				t.Errorf("%q, want %q", got, c.want)
			}
			if c.want != "" {
				wantFinding(t, in, c.want)
			}
		})
	}
}

func of(in *lint.Input) *lint.Configuration { return &in.Configurations[0] }

func entryOf(in *lint.Input) *admissionregistrationv1.MutatingWebhook { return &of(in).Webhooks[0] }
