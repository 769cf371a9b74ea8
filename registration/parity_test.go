// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/match"
)

// worlds is how many random clusters the comparisons with the API server take, and
// requests how many of each.
const (
	worlds   = 60
	requests = 60
)

// direct is a webhook as the cluster itself would have registered it.
func direct(w *chain.Entry) wanted {
	return wanted{w.Spec.Rules, w.Spec.MatchPolicy, w.Spec.NamespaceSelector, w.Spec.ObjectSelector, nil}
}

func (e *entry) wanted() wanted {
	return wanted{e.rules, e.matchPolicy, e.namespaces, e.objects.selector(), e.conditions}
}

// TestParity compares, for random webhooks and requests, an API server that calls
// the webhooks itself with one that applies what is printed.
func TestParity(t *testing.T) {
	seen := map[string]int{}
	for seed := range worlds {
		d := diceOf(seed)
		w := d.world(t)
		for range requests {
			q := d.request(w)
			for _, phase := range []chain.Phase{chain.Validating, chain.Mutating} {
				c := comparisonOf(w, phase, q)
				c.up(t, seed, seen)
				c.down(t, seed, seen)
				if phase == chain.Mutating {
					c.mutated(t, seed, d)
				}
			}
		}
	}
	t.Logf("%d requests in %d clusters: %v", 2*worlds*requests, worlds, seen)
	for _, what := range []string{"bypassed", "as sent", "converted", "not called", "denied", "let in", "fail open", "several paths", "divided"} {
		if seen[what] == 0 {
			t.Errorf("the draws were one-sided: none %s", what)
		}
	}
}

// comparison is one request, behind the registration.
type comparison struct {
	*world
	phase    chain.Phase
	q        *sent
	chain    *chain.Chain
	called   []*entry
	forms    []schema.GroupVersionResource // of called
	bypassed bool
	failOpen bool
}

func comparisonOf(w *world, phase chain.Phase, q *sent) *comparison {
	c := &comparison{world: w, phase: phase, q: q, chain: w.cluster.Chain(phase)}
	for i := range w.made.entries[phase] {
		e := &w.made.entries[phase][i]
		if form, ok := w.api.calls(e.wanted(), q); ok {
			c.called, c.forms = append(c.called, e), append(c.forms, form)
		}
	}
	review := w.api.subject(q, q.resource).Review
	_, c.bypassed = w.cluster.Bypass.Match(review)
	_, c.failOpen = w.cluster.FailOpen.Match(review)
	return c
}

// up: each webhook gets the request once, in the form in which the API server would
// have sent it to that webhook itself, or not at all if it would not have.
func (c *comparison) up(t *testing.T, seed int, seen map[string]int) {
	t.Helper()
	urls := map[string]bool{}
	for n, e := range c.called {
		if rule, ok := c.cluster.Bypass.Match(c.api.subject(c.q, c.forms[n]).Review); ok {
			t.Fatalf("seed %d: %+v as %v would be bypassed by %s, and is not by the API server", seed, c.q, c.forms[n], rule)
		}
		if urls[e.path.Segment] {
			t.Fatalf("seed %d: %+v is called twice on %q", seed, c.q, e.path.Segment)
		}
		urls[e.path.Segment] = true
	}
	if c.bypassed && len(c.called) > 0 {
		t.Fatalf("seed %d: %+v is bypassed, and called", seed, c.q)
	}
	if len(c.called) > 1 {
		seen["several paths"]++
	}
	for i, w := range c.chain.Webhooks {
		want, wanted := c.api.calls(direct(w), c.q)
		wanted = wanted && !c.bypassed
		count := 0
		for n, e := range c.called {
			path, current := c.chain.Path([]byte(e.path.Segment))
			if !current {
				t.Fatalf("seed %d: %q is not a path of the chain", seed, e.path.Segment)
			}
			if !path.Considers(i) {
				continue
			}
			d := w.Matcher.Match(c.api.subject(c.q, c.forms[n]))
			if d.Reason == match.NotConvertible {
				t.Fatalf("seed %d: %+v reaches %s as %v: %v\n%+v", seed, c.q, w.Name, c.forms[n], d.Err, w.Spec.Rules)
			}
			if d.Reason != match.Matched {
				continue
			}
			if count++; c.forms[n] != want {
				t.Fatalf("seed %d: %+v reaches %s as %v, want %v\n%+v", seed, c.q, w.Name, c.forms[n], want, w.Spec.Rules)
			}
		}
		if (count == 1) != wanted || count > 1 {
			t.Fatalf("seed %d: %s gets %+v %d times, directly %v\n%+v", seed, w.Name, c.q, count, wanted, w.Spec.Rules)
		}
		switch {
		case !wanted:
			seen["not called"]++
		case want == c.q.resource:
			seen["as sent"]++
		default:
			seen["converted"]++
		}
	}
	if c.bypassed {
		seen["bypassed"]++
	}
}

// TestLabelsThatChange: whoever changes the labels of a namespace while the API
// server goes from entry to entry escapes no webhook that fails closed and does not
// look at them.
func TestLabelsThatChange(t *testing.T) {
	judged, divided := 0, 0
	for seed := range worlds {
		d := diceOf(seed)
		w := d.world(t)
		for range requests {
			q := d.request(w)
			if q.resource.Resource == "namespaces" {
				continue
			}
			for _, phase := range []chain.Phase{chain.Validating, chain.Mutating} {
				list, entries := w.cluster.Chain(phase), w.made.entries[phase]
				called := make([]bool, len(list.Webhooks))
				for i := range entries {
					if w.api.namespaces = d.relabelled(); strings.Contains(entries[i].name, "-2") {
						divided++
					}
					if _, ok := w.api.calls(entries[i].wanted(), q); ok {
						for _, position := range entries[i].path.Positions {
							called[position] = true
						}
					}
				}
				_, bypassed := w.cluster.Bypass.Match(w.api.subject(q, q.resource).Review)
				for i, hook := range list.Webhooks {
					_, labels := requirementsOf(namespaceSelector(hook)).byName()
					if bypassed || hook.FailurePolicy != chain.Fail || hook.Mode != chain.Enforce || len(labels) > 0 {
						continue
					}
					if _, wanted := w.api.calls(direct(hook), q); wanted {
						if judged++; !called[i] {
							t.Fatalf("seed %d, %s: %+v does not reach %s\n%+v", seed, phase, q, hook.Name, hook.Spec.Rules)
						}
					}
				}
			}
		}
	}
	if judged == 0 || divided == 0 {
		t.Errorf("the draws were one-sided: %d judged, %d entries of divided parts", judged, divided)
	}
}

// TestLabelsOfANamespaceThatChange: webhooks that change the labels of a Namespace,
// while the API server goes from entry to entry, get it out of no entry and into no
// second one. Where a webhook that fails closed goes by such labels, it is denied
// while the dispatcher is down.
func TestLabelsOfANamespaceThatChange(t *testing.T) {
	mutating, _ := configurations()
	for i, policy := range []admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Fail, admissionregistrationv1.Ignore} {
		hook := diceOf(1).webhook(i)
		hook.Rules, hook.FailurePolicy = []admissionregistrationv1.RuleWithOperations{anything()}, &policy
		hook.NamespaceSelector, hook.ObjectSelector = nil, nil
		if policy == admissionregistrationv1.Fail {
			hook.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "a", "team": "a"}}
		}
		mutating.Webhooks = append(mutating.Webhooks, hook)
	}
	c := compiled(t, mutating)
	c.Bypass, c.FailOpen = exempt.Compile(nil), exempt.Compile(nil)
	made, err := New(c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	entries := made.entries[chain.Mutating]
	if len(entries) < 3 {
		t.Fatalf("labels divide nothing: %d entries", len(entries))
	}
	api := newAPIServer(t, nil, storedNamespaces())
	labels := []map[string]string{{}, {"tier": "a"}, {"team": "a"}, {"tier": "a", "team": "a"}}
	q := &sent{operation: codec.Create, resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, name: "new", namespace: "new"}
	for draw := range 1 << (2 * len(entries)) {
		var called []string
		for i := range entries {
			q.labels = labels[draw>>(2*i)%len(labels)]
			if _, ok := api.calls(entries[i].wanted(), q); ok {
				called = append(called, string(entries[i].failurePolicy))
			}
		}
		if len(called) != 1 || called[0] != string(admissionregistrationv1.Fail) {
			t.Fatalf("labels %d: entries of failurePolicy %q are called", draw, called)
		}
	}
}

// relabelled are the stored namespaces, with other labels but for the name.
func (d dice) relabelled() map[string]map[string]string {
	namespaces := storedNamespaces()
	for _, l := range namespaces {
		for _, key := range []string{"tier", "team"} {
			if delete(l, key); d.IntN(2) == 0 {
				l[key] = pick(d, "a", "shop", "lab")
			}
		}
	}
	return namespaces
}

// mutated: no URL is called twice although what is called first changes labels.
func (c *comparison) mutated(t *testing.T, seed int, d dice) {
	t.Helper()
	q, urls := *c.q, map[string]bool{}
	for i := range c.made.entries[chain.Mutating] {
		e := &c.made.entries[chain.Mutating][i]
		if _, ok := c.api.calls(e.wanted(), &q); !ok {
			continue
		}
		if urls[e.path.Segment] {
			t.Fatalf("seed %d: once it is mutated, %+v is called twice on %q", seed, c.q, e.path.Segment)
		}
		urls[e.path.Segment] = true
		if q.labels != nil {
			q.labels = map[string]string{metadataName: pick(d, "shop", "lab"), "tier": pick(d, "a", "shop", "lab"), "owner": pick(d, "a", "lab")}
		}
	}
}

// down: with the dispatcher dead, what is denied is what is denied with all
// webhooks dead, the same bypasses and the same failOpen rules.
func (c *comparison) down(t *testing.T, seed int, seen map[string]int) {
	t.Helper()
	denied := false
	for _, e := range c.called {
		denied = denied || e.failurePolicy == admissionregistrationv1.Fail
		if strings.Contains(e.name, "-2") {
			seen["divided"]++
		}
	}
	least, most := c.deniedDirectly()
	if denied && !most || !denied && least {
		t.Fatalf("seed %d, %s: %+v is denied: %v; directly %v, at most %v", seed, c.phase, c.q, denied, least, most)
	}
	switch {
	case c.failOpen:
		seen["fail open"]++
	case denied:
		seen["denied"]++
	case len(c.called) > 0:
		seen["let in"]++
	}
	if least != most {
		seen["closed, perhaps without need"]++
	}
}

// deniedDirectly reports what the cluster does with all its webhooks down; most adds
// what a registration cannot tell apart, and closes.
func (c *comparison) deniedDirectly() (least, most bool) {
	if c.bypassed || c.failOpen {
		return false, false
	}
	for i, w := range c.chain.Webhooks {
		if w.FailurePolicy != chain.Fail || w.Mode != chain.Enforce {
			continue
		}
		h := direct(w)
		_, ok := c.api.calls(h, c.q)
		least = least || ok
		var e *entry
		for n := range c.made.entries[c.phase] {
			if each := &c.made.entries[c.phase][n]; each.path.Considers(i) {
				e = each
			}
		}
		if c.phase == chain.Mutating { // objects change from one entry to the next
			h.objects = e.objects.selector()
			if c.q.resource.Resource == "namespaces" {
				h.namespaces = e.part.namespaces.selector()
			}
		}
		names, _ := requirementsOf(h.namespaces).byName()
		if undivided(c.made.entries[c.phase], e.part) {
			h.namespaces = e.part.namespaces.and(names...).selector()
		}
		if c.q.resource.Resource == "namespaces" && c.q.namespace == "" { // it has no name yet
			h.namespaces = requirementsOf(h.namespaces).without(names.without(e.part.namespaces)).selector()
		}
		_, ok = c.api.calls(h, c.q)
		most = most || ok
	}
	return least, most
}

// undivided reports whether a part has claims that only labels of namespaces tell
// apart, and too many to be divided by them.
func undivided(entries []entry, p *part) bool {
	labelled := false
	for _, c := range p.claims {
		labelled = labelled || len(c.labels) > 0
	}
	cells := map[string]bool{}
	for i := range entries {
		if entries[i].part == p {
			cells[strings.TrimSuffix(entries[i].name, "-open")] = true
		}
	}
	return labelled && len(cells) == 1
}
