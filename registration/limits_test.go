// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/exempt"
)

// An expression may be as long as an API server evaluates, and no longer.
func TestLongestExpression(t *testing.T) {
	for n, ok := range map[int]bool{longestExpression: true, longestExpression + 1: false} {
		e := entry{name: "validate", conditions: []admissionregistrationv1.MatchCondition{{Name: "short"}, {Name: "long", Expression: strings.Repeat("x", n)}}}
		err := e.check()
		if (err == nil) != ok || !ok && !strings.Contains(err.Error(), "matchCondition long of validate has 60001 bytes, at most 60000") {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// What claims need more text for than there may be is taken to be everything.
func TestLongestClaim(t *testing.T) {
	of := func(n int) (*part, string) {
		all, r := anything(), anything()
		r.Resources = []string{strings.Repeat("x", n)}
		p := &part{
			rules:  []admissionregistrationv1.RuleWithOperations{normalized(&all)},
			claims: []*claim{{rules: []admissionregistrationv1.RuleWithOperations{normalized(&r)}}},
		}
		return p, p.claims[0].text(p)
	}
	_, shortest := of(0)
	all := func(*claim) bool { return true }
	for size, said := range map[int]bool{longestClaim: true, longestClaim + 1: false} {
		p, text := of(size - len(shortest))
		want := text
		if !said {
			want = always
		}
		if got := p.claimed(all); len(text) != size || got != want {
			t.Errorf("a claim of %d bytes is said in %.20q", len(text), got)
		}
	}
}

// Labels of namespaces cost a phase as many entries as they may, whatever the number of
// its paths, and not one more. What is beyond fails closed in all namespaces.
func TestMostDivided(t *testing.T) {
	const whole = 1
	for name, tt := range map[string]struct {
		labels []int // of the webhooks that are registered apart, how many divide them
		want   []int // into how many parts
	}{
		"one webhook, as many as there may be":           {[]int{2}, []int{4}},
		"one webhook, more":                              {[]int{3}, []int{whole}},
		"two share them":                                 {[]int{1, 1}, []int{2, 2}},
		"the third gets none":                            {[]int{1, 1, 1}, []int{2, 2, whole}},
		"the second would need more than are left":       {[]int{1, 2}, []int{2, whole}},
		"one that is too much leaves them to the next":   {[]int{3, 2}, []int{whole, 4}},
		"one that goes by no label leaves them as well":  {[]int{0, 2}, []int{whole, 4}},
		"what is undivided in between costs nothing too": {[]int{1, 0, 1}, []int{2, whole, 2}},
	} {
		_, validating := configurations()
		add := func(name, version string, policy admissionregistrationv1.FailurePolicyType, selector *metav1.LabelSelector) {
			r := anything()
			r.APIGroups, r.APIVersions, r.Resources = []string{"x"}, []string{version}, []string{"things"}
			validating.Webhooks = append(validating.Webhooks, admissionregistrationv1.ValidatingWebhook{
				Name: name + ".example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://hooks.example.com/w")},
				Rules: []admissionregistrationv1.RuleWithOperations{r}, FailurePolicy: &policy, NamespaceSelector: selector,
				SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			})
		}
		for i, labels := range tt.labels {
			version := fmt.Sprintf("v%d", i+1)
			add("open"+version, version, admissionregistrationv1.Ignore, nil)
			for n := range labels {
				add(fmt.Sprint(version, "-", n), version, admissionregistrationv1.Fail, &metav1.LabelSelector{MatchLabels: map[string]string{[]string{"tier", "team", "zone"}[n]: "a"}})
			}
		}
		c := compiled(t, validating)
		c.Bypass, c.FailOpen = exempt.Compile(nil), exempt.Compile(nil)
		made, err := New(c, Options{URL: "https://d.example.com"})
		if err != nil {
			t.Fatal(err)
		}
		divided := map[string]map[string]bool{} // the namespaceSelectors, by what is listed
		var got []int
		for i := range made.entries[chain.Validating] {
			e := &made.entries[chain.Validating][i]
			listed := e.rules[0].APIVersions[0]
			if divided[listed] == nil {
				divided[listed] = map[string]bool{}
			}
			divided[listed][e.namespaces.String()] = true
		}
		for i := range tt.labels {
			got = append(got, len(divided[fmt.Sprintf("v%d", i+1)]))
		}
		if fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%s: %d parts, want %d", name, got, tt.want)
		}
	}
}

// The webhooks that are registered apart must fit a URL.
func TestMostPathIDs(t *testing.T) {
	list := &chain.Chain{Webhooks: hooksOf(t, admissionregistrationv1.Exact, []admissionregistrationv1.RuleWithOperations{anything()})}
	for n, ok := range map[int]bool{chain.MaxPathIDs: true, chain.MaxPathIDs + 1: false} {
		path := &chain.Path{Segment: "not" + strings.Repeat(".0123456789", n), Positions: []int{0}}
		if _, err := partOf(list, chain.Validating, path); (err == nil) != ok {
			t.Errorf("%d ids: %v", n, err)
		}
	}
}

// Bypass rules have a condition each as long as there are few, and share them
// otherwise; rules on namespaces alone are one condition.
func TestNumberOfExclusions(t *testing.T) {
	rules := func(n int, rule exempt.Rule) []exempt.Rule {
		list := make([]exempt.Rule, n)
		for i := range list {
			list[i] = rule
			list[i].Name = fmt.Sprintf("rule %d", i)
		}
		return list
	}
	names := func(rules []exempt.Rule) (list []string) {
		for _, c := range exclusions(rules) {
			list = append(list, c.Name)
		}
		return list
	}
	user := exempt.Rule{Users: []string{"ann"}}
	for n, want := range map[int]struct {
		conditions  int
		first, last string
	}{
		1:   {1, "not-bypassed-0-rule-0", "not-bypassed-0-rule-0"},
		48:  {48, "not-bypassed-0-rule-0", "not-bypassed-47-rule-47"},
		49:  {25, "not-bypassed-0-to-1", "not-bypassed-48-rule-48"},
		96:  {48, "not-bypassed-0-to-1", "not-bypassed-94-to-95"},
		97:  {33, "not-bypassed-0-to-2", "not-bypassed-96-rule-96"},
		480: {48, "not-bypassed-0-to-9", "not-bypassed-470-to-479"},
	} {
		got := names(rules(n, user))
		if len(got) != want.conditions || got[0] != want.first || got[len(got)-1] != want.last {
			t.Errorf("%d rules are %d conditions, %s to %s", n, len(got), got[0], got[len(got)-1])
		}
	}
	if got := names(append(rules(100, exempt.Rule{Namespaces: []string{"a"}}), rules(1, user)...)); fmt.Sprint(got) != "[not-in-bypassed-namespaces not-bypassed-0-rule-0]" {
		t.Errorf("rules on namespaces are %q", got)
	}
	if got := names(nil); len(got) > 0 {
		t.Errorf("no rules are %q", got)
	}
}

// Rules may have any name, conditions only some.
func TestConditionName(t *testing.T) {
	for name, want := range map[string]string{
		"":                             "not-bypassed-3",
		"---":                          "not-bypassed-3",
		"azAZ09":                       "not-bypassed-3-azAZ09",
		"a b/c":                        "not-bypassed-3-a-b-c",
		"`{@[/:":                       "not-bypassed-3",
		"x`x{x@x[x/x:x":                "not-bypassed-3-x-x-x-x-x-x-x",
		" heal ":                       "not-bypassed-3-heal",
		"j\u00fcrgen":                  "not-bypassed-3-j-rgen",
		strings.Repeat("a", 40):        "not-bypassed-3-" + strings.Repeat("a", 40),
		strings.Repeat("a", 41):        "not-bypassed-3-" + strings.Repeat("a", 40),
		strings.Repeat("a", 39) + " b": "not-bypassed-3-" + strings.Repeat("a", 39),
	} {
		if got := conditionName(3, name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

// A CEL literal is printable ASCII.
func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"": `""`, "a b": `"a b"`, `"`: `"\""`, `\`: `"\\"`, " ~": `" ~"`, "\x1f": `"\U0000001f"`, "\x7f": `"\U0000007f"`, "\u00fc\U0001F600": `"\U000000fc\U0001f600"`,
	} {
		if got := quote(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

// A comment names fifty webhooks of an entry and says how many more there are.
func TestNamedWebhooks(t *testing.T) {
	for n, more := range map[int]string{mostNamed: "", mostNamed + 1: "#   and 1 more\n", mostNamed + 7: "#   and 7 more\n"} {
		_, validating := configurations()
		for i := range n {
			w := diceOf(1).webhook(i)
			w.Rules = []admissionregistrationv1.RuleWithOperations{anything()}
			validating.Webhooks = append(validating.Webhooks, validatingOf(&w))
		}
		c := compiled(t, validating)
		made, err := New(c, Options{URL: "https://d.example.com"})
		if err != nil {
			t.Fatal(err)
		}
		text, err := made.YAML(c)
		if err != nil {
			t.Fatal(err)
		}
		if named := strings.Count(string(text), "#   c/w"); named != mostNamed || strings.Contains(string(text), "more\n") != (more != "") || !strings.Contains(string(text), more) {
			t.Errorf("of %d webhooks %d are named, want %q besides", n, named, more)
		}
	}
}

// Of a registration one phase can be taken alone.
func TestOnly(t *testing.T) {
	c, made := both(t)
	for phase, other := range map[chain.Phase]chain.Phase{chain.Mutating: chain.Validating, chain.Validating: chain.Mutating} {
		only := made.Only(phase)
		text, err := only.YAML(c)
		if err != nil {
			t.Fatal(err)
		}
		if (only.Mutating != nil) != (phase == chain.Mutating) || (only.Validating != nil) != (phase == chain.Validating) {
			t.Errorf("%s: there are mutating ones: %t, validating ones: %t", phase, only.Mutating != nil, only.Validating != nil)
		}
		if strings.Contains(string(text), "/"+other.String()) || strings.Contains(string(text), "# "+other.String()) || !strings.Contains(string(text), "# "+phase.String()) {
			t.Errorf("%s:\n%s", phase, text)
		}
	}
}
