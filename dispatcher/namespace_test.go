// SPDX-License-Identifier: Apache-2.0

package dispatcher_test

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/dispatcher/overload"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/transport"
)

const selectiveCluster = `
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: %[1]s}
spec: {authentication: {certificate: {commonNames: [%[1]s]}}, namespaces: {labels: {shop: {tier: gold}}}}
`

// selectiveWebhook wants Pods with the label policy=yes in namespaces of tier gold.
const selectiveWebhook = `
apiVersion: admissionregistration.k8s.io/v1
kind: %[1]sWebhookConfiguration
metadata: {name: selective}
webhooks:
- name: selective.example.com
  clientConfig: {url: "https://webhook.example.com/selective"}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [pods]}]
  namespaceSelector: {matchLabels: {tier: gold}}
  objectSelector: {matchLabels: {policy: "yes"}}
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: 10
  failurePolicy: %[2]s
`

// api is the source of a cluster that must be asked for its namespaces.
type api struct {
	times  int
	tier   string     // of the namespace; gold
	answer chan error // what a lookup ends with; it takes as long as nothing is there
}

func (*api) NamespaceLabels(string) (map[string]string, error) { return nil, match.ErrNotLookedUp }

func (a *api) LookUpNamespace(_ string, deadline time.Time) (map[string]string, error) {
	a.times++
	select {
	case err := <-a.answer:
		return map[string]string{"tier": cmp.Or(a.tier, "gold")}, err
	case <-time.After(time.Until(deadline) / 2):
		return nil, errors.New("the cluster's API did not answer in time")
	}
}

// selectiveWorld is clusters with one selective webhook: that of east must be asked
// for namespaces, that of west has a list.
func selectiveWorld(t *testing.T, phase chain.Phase, policy string, limits overload.Limits) (*dispatcher.Dispatcher, *registry.Snapshot, *api) {
	t.Helper()
	kind := map[chain.Phase]string{chain.Validating: "Validating", chain.Mutating: "Mutating"}[phase]
	caller := calling(func(call transport.Call, to hook.Receiver) { answer(call, to, codec.Response{Allowed: true}, nil) })
	d, s := newWorld(t, caller, limits, fmt.Sprintf(selectiveCluster, "east"), fmt.Sprintf(selectiveCluster, "west"),
		fmt.Sprintf(selectiveWebhook, kind, policy))
	source := &api{answer: make(chan error)}
	s.Clusters["east"].Namespaces = source
	return d, s, source
}

var (
	selectedPod = fmt.Appendf(nil, podReview, `{"metadata":{"name":"web","labels":{"policy":"yes"}}}`)
	otherPod    = fmt.Appendf(nil, podReview, `{"metadata":{"name":"web"}}`)
)

// A lookup that hangs is its own cluster's affair: the admission holds a slot of its
// cluster while it waits, those that are beyond the limit are shed, and who needs no
// lookup goes on, in this cluster and in others.
func TestLookupIsPartOfTheAdmission(t *testing.T) {
	for _, phase := range []chain.Phase{chain.Validating, chain.Mutating} {
		t.Run(phase.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, s, source := selectiveWorld(t, phase, "Fail", overload.Limits{Admissions: 4, PerCluster: 1})
				verdict := make(chan dispatcher.Verdict)
				go func() { verdict <- admitPhase(t, phase, d, s, "east", selectedPod, 10*time.Second) }()
				synctest.Wait()
				if d.InFlight()["east"] != 1 || source.times != 1 {
					t.Errorf("in flight %v, %d lookups", d.InFlight(), source.times)
				}
				start := time.Now()
				if v := admitPhase(t, phase, d, s, "west", selectedPod, 10*time.Second); !v.Response.Allowed || len(v.Outcomes) != 1 {
					t.Errorf("west: %+v", v)
				}
				if v := admitPhase(t, phase, d, s, "east", otherPod, 10*time.Second); !v.Response.Allowed || len(v.Outcomes) != 0 {
					t.Errorf("east, without a lookup: %+v", v)
				}
				if waited := time.Since(start); waited != 0 {
					t.Errorf("others waited %v", waited)
				}
				if v := admitPhase(t, phase, d, s, "east", selectedPod, 10*time.Second); v.Response.Allowed || v.Response.Code != 429 || source.times != 1 {
					t.Errorf("beyond the limit: %+v, %d lookups", v.Response, source.times)
				}
				source.answer <- nil
				if v := <-verdict; !v.Response.Allowed || len(v.Outcomes) != 1 || v.Outcomes[0].Result != dispatcher.Allowed {
					t.Errorf("looked up: %+v", v)
				}
				if n := len(d.InFlight()); n != 0 {
					t.Errorf("%d clusters have slots", n)
				}
			})
		})
	}
}

// Lookups that hang take a part of the slots, which clusters share: the rest is for
// admissions that wait for nobody's API.
func TestLookupsLeaveSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s, source := selectiveWorld(t, chain.Validating, "Fail", overload.Limits{Admissions: 16, PerCluster: 16})
		s.Clusters["west"].Namespaces = source
		var waiting sync.WaitGroup
		admitted := map[string]int{}
		for _, cluster := range []string{"east", "east", "east", "west", "west"} {
			before := source.times
			waiting.Go(func() { admitPhase(t, chain.Validating, d, s, cluster, selectedPod, 10*time.Second) })
			synctest.Wait()
			admitted[cluster] += source.times - before
		}
		if admitted["east"] != 2 || admitted["west"] != 1 || d.InFlight()["east"] != 2 {
			t.Errorf("lookups under way: %v, in flight %v", admitted, d.InFlight())
		}
		for range 3 {
			source.answer <- nil
		}
		waiting.Wait()
		waiting.Go(func() { source.answer <- nil })
		if v := admitPhase(t, chain.Validating, d, s, "east", selectedPod, 10*time.Second); !v.Response.Allowed {
			t.Errorf("after they have ended: %+v", v.Response)
		}
		waiting.Wait()
	})
}

// Without a slot nobody knows whether the webhook wants the review: it counts as
// called and failed, and under Ignore that is a visible fail-open.
func TestLookupThatIsShedFailsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s, source := selectiveWorld(t, chain.Validating, "Ignore", overload.Limits{Admissions: 1})
		done := make(chan struct{})
		go func() { defer close(done); admitPhase(t, chain.Validating, d, s, "east", selectedPod, 10*time.Second) }()
		synctest.Wait()
		v := admitPhase(t, chain.Validating, d, s, "east", selectedPod, 10*time.Second)
		if !v.Response.Allowed || len(v.Outcomes) != 1 || v.Outcomes[0].Result != dispatcher.FailedOpen || v.Outcomes[0].Cause != hook.Shed ||
			!strings.Contains(strings.Join(v.Response.Warnings, " "), "selective.example.com") {
			t.Errorf("%+v", v)
		}
		source.answer <- nil
		<-done
	})
}

// What comes of a lookup: the labels for all webhooks, a namespace that does not
// exist, or no answer, which is a Refusal as well, and in time.
func TestResultOfALookup(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"found", nil, ""},
		{"B18 not found", match.ErrNoNamespace, `namespaces "shop" not found`},
		{"failed", errors.New("no"), `the labels of namespace "shop" are not known: no`},
		{"without labels", match.ErrNotLookedUp, `the labels of namespace "shop" are not known`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, s, source := selectiveWorld(t, chain.Validating, "Ignore", overload.Limits{})
			source.answer = make(chan error, 1)
			source.answer <- tt.err
			v := admitPhase(t, chain.Validating, d, s, "east", selectedPod, 10*time.Second)
			if v.Response.Allowed != (tt.want == "") || !strings.Contains(v.Response.Message, tt.want) || tt.want != "" && v.Response.Code != 404 {
				t.Errorf("%+v", v.Response)
			}
		})
	}
	t.Run("none in time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, s, _ := selectiveWorld(t, chain.Mutating, "Ignore", overload.Limits{})
			start := time.Now()
			v := admitPhase(t, chain.Mutating, d, s, "east", selectedPod, time.Second)
			if waited := time.Since(start); v.Response.Code != 404 || waited != 500*time.Millisecond || len(d.InFlight()) != 0 {
				t.Errorf("%+v after %v, in flight %v", v.Response, waited, d.InFlight())
			}
		})
	})
}

// Explain contacts nobody: it says that the namespace would be looked up.
func TestExplainDoesNotLookUp(t *testing.T) {
	_, s, source := selectiveWorld(t, chain.Validating, "Fail", overload.Limits{})
	review := codec.AcquireReview()
	defer codec.ReleaseReview(review)
	body := codec.NewBody(selectedPod, nil)
	defer body.Release()
	if err := review.Decode(body); err != nil {
		t.Fatal(err)
	}
	e := dispatcher.Explain(review, s.Clusters["east"], chain.Validating)
	if w := e.Webhooks[0]; w.Called || w.Reason != "NamespaceNotLookedUp" || source.times != 0 {
		t.Errorf("%+v, %d lookups", w, source.times)
	}
}

// Why a webhook is not asked is kept for whoever wants to know.
func TestSkips(t *testing.T) {
	_, s, _ := selectiveWorld(t, chain.Validating, "Fail", overload.Limits{})
	for keep, want := range map[bool]int{true: 1, false: 0} {
		d, err := dispatcher.New(dispatcher.Config{KeepSkips: keep, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		v := admitPhase(t, chain.Validating, d, s, "west", otherPod, time.Second)
		if len(v.Skips) != want || want > 0 && (v.Skips[0].Reason != match.ObjectSelector || v.Skips[0].Webhook.Name != "selective.example.com") {
			t.Errorf("keep %v: %+v", keep, v.Skips)
		}
	}
}

// In the mode Warn a match that cannot be decided is a warning, and no skip: that is what
// a dry run is.
func TestWarnSoftensAnUndecidableMatch(t *testing.T) {
	d, s, source := selectiveWorld(t, chain.Validating, "Fail", overload.Limits{})
	s.Clusters["east"].Validating.Webhooks[0].Mode = chain.Warn
	source.answer = make(chan error, 1)
	source.answer <- match.ErrNoNamespace
	v := admitPhase(t, chain.Validating, d, s, "east", selectedPod, time.Second)
	if o := v.Outcomes[0]; !v.Response.Allowed || o.Result != dispatcher.Softened || !o.Softened {
		t.Errorf("%+v", o)
	}
}
