// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
)

// The classes of side effects say who may be called in a dry run, and who twice.
func TestSideEffects(t *testing.T) {
	for class, want := range map[chain.SideEffects]string{
		chain.SideEffectsNone: "true true true", chain.SideEffectsNoneOnDryRun: "true false true",
		chain.SideEffectsSome: "false false false", chain.SideEffectsUnknown: "false false false",
	} {
		if got := fmt.Sprint(class.SupportsDryRun(), class.Repeatable(false), class.Repeatable(true)); got != want {
			t.Errorf("%v: %s, want %s", class, got, want)
		}
	}
}

// Words are spelled as Kubernetes, a WebhookBinding and the URL spell them.
func TestWords(t *testing.T) {
	for got, want := range map[fmt.Stringer]string{
		chain.Validating: "validate", chain.Mutating: "mutate",
		chain.Fail: "Fail", chain.Ignore: "Ignore",
		chain.SideEffectsNone: "None", chain.SideEffectsNoneOnDryRun: "NoneOnDryRun", chain.SideEffectsSome: "Some", chain.SideEffectsUnknown: "Unknown",
		chain.Enforce: "Enforce", chain.Warn: "Warn", chain.Shadow: "Shadow",
		chain.ProbeConnect: "Connect", chain.ProbeSkip: "Skip", chain.ProbeReview: "Review",
		chain.JoinEnforce: "Enforce", chain.JoinWhenReady: "WhenReady",
		chain.StageValidating: "Validating", chain.StageTransactional: "Transactional", chain.StagePolicy: "Policy",
	} {
		if got.String() != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A Cluster has a chain for each phase; the labels that are looked at are those of both.
func TestCluster(t *testing.T) {
	selecting := func(keys ...string) *chain.Chain {
		c := &chain.Chain{}
		for _, key := range keys {
			m, err := match.Compile(match.Spec{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: "a"}}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			c.Webhooks = append(c.Webhooks, &chain.Entry{Matcher: m})
		}
		return c
	}
	c := chain.Cluster{Validating: selecting("team", "tier"), Mutating: selecting("team", "zone", "kubernetes.io/metadata.name")}
	if c.Chain(chain.Validating) != c.Validating || c.Chain(chain.Mutating) != c.Mutating {
		t.Error("a phase has the other's chain")
	}
	keys := map[string]bool{}
	c.SelectedLabels(keys)
	if diff := cmp.Diff(map[string]bool{"team": true, "tier": true, "zone": true}, keys); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

// A webhook is found by both of its names, if it takes part.
func TestFind(t *testing.T) {
	pending := &chain.Entry{ID: hook.ID{Configuration: "c", Name: "pending"}, Pending: errors.New("no answer yet")}
	list, _ := entries(t, "v1", "v1")
	c := &chain.Chain{Webhooks: append(list, pending)}
	for i, w := range list {
		if got := c.Find("c", fmt.Sprintf("w%d", i)); got != w {
			t.Errorf("w%d is %v", i, got)
		}
	}
	for _, names := range [][2]string{{"d", "w0"}, {"c", "w2"}, {"c", "pending"}} {
		if got := c.Find(names[0], names[1]); got != nil {
			t.Errorf("%v is %v", names, got)
		}
	}
	if (*chain.Chain)(nil).Find("c", "w0") != nil {
		t.Error("there is something where no chain is")
	}
}

// A chain with other webhooks in the places of its own selects by theirs, and has the
// paths that it had.
func TestWith(t *testing.T) {
	list, matchers := entries(t, "v1", "v2")
	c := &chain.Chain{Webhooks: list, Index: match.NewIndex(matchers), Paths: chain.PathsOf(list, matchers, chain.Validating), Positions: map[string]int{"a": 1}}
	others, _ := entries(t, "v3", "v3")
	got := c.With(others)
	if !slices.Equal(got.Webhooks, others) || !slices.Equal(got.Paths, c.Paths) || got.Positions["a"] != 1 {
		t.Errorf("%+v", got)
	}
	want := match.NewIndex([]*match.Matcher{others[0].Matcher, others[1].Matcher})
	if diff := cmp.Diff(want, got.Index, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("index (-want +got):\n%s", diff)
	}
}

// A denial reads as kube-apiserver words it, unless the Hook has words of its own.
func TestDenial(t *testing.T) {
	for _, row := range []struct {
		noun, prefix, message, reason string
		want                          string
	}{
		{want: `admission webhook "w" denied the request without explanation`},
		{reason: "Forbidden", want: `admission webhook "w" denied the request: Forbidden`},
		{message: "no", reason: "Forbidden", want: `admission webhook "w" denied the request: no`},
		{noun: "plugin", message: "no", want: `admission plugin "w" denied the request: no`},
		{noun: "plugin", prefix: "quota exceeded", message: "no", want: `quota exceeded: no`},
	} {
		w := chain.Entry{ID: hook.ID{Name: "w"}, Noun: row.noun, DenialPrefix: row.prefix}
		if got := w.Denial(row.message, row.reason); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}

// served is a Hook that needs a Resource.
type served struct{ by string }

func (served) Ask(context.Context, hook.Question, hook.Receiver) hook.Outstanding { return nil }
func (s served) ServedBy() string                                                 { return s.by }

// An entry needs what its Hook says, or nothing.
func TestServedBy(t *testing.T) {
	for want, h := range map[string]hook.Hook{"a": served{"a"}, "": hook.Local(nil)} {
		if got := (&chain.Entry{Hook: h}).ServedBy(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Two entries that differ in anything, where they are served included, have two sums.
func TestSum(t *testing.T) {
	_, matchers := entries(t, "v1")
	known := map[string]int{}
	for i, w := range []chain.Entry{
		{}, {Noun: "plugin"}, {Mode: chain.Warn}, {Timeout: time.Second}, {Order: 1}, {ID: hook.ID{Name: "w"}},
		{Hook: served{"a"}}, {Hook: served{"b"}},
	} {
		sum := string(w.Sum())
		if other, ok := known[sum]; ok {
			t.Errorf("%d has the sum of %d", i, other)
		}
		known[sum] = i
		again := w
		again.Matcher = matchers[0] // which the Spec says
		if !bytes.Equal(again.Sum(), w.Sum()) {
			t.Errorf("%d has another sum the next time", i)
		}
	}
	if a, b := (chain.Entry{Hook: served{"a"}}), (chain.Entry{Hook: served{"a"}}); !bytes.Equal(a.Sum(), b.Sum()) {
		t.Error("two that are alike have two sums")
	}
}
