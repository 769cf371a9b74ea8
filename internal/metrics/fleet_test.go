// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/metrics"
	"github.com/admission-dispatcher/dispatcher/internal/mirrorstatus"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// fleet is clusters that share webhooks, half of them of each phase.
type fleet struct {
	dir      string
	registry *registry.Registry
	clusters []*chain.Cluster
	mirror   *mirrorstatus.Mirror
}

func newFleet(t testing.TB, clusters, webhooks int) *fleet {
	t.Helper()
	f := &fleet{dir: t.TempDir(), mirror: &mirrorstatus.Mirror{Generation: "abc"}}
	f.registry = registry.New(registry.Settings{Sources: manifest.Directories(f.dir), Logger: slog.New(slog.DiscardHandler)})
	f.load(t, clusters, webhooks)
	return f
}

// load makes the fleet this large.
func (f *fleet) load(t testing.TB, clusters, webhooks int) {
	t.Helper()
	var text strings.Builder
	for i := range clusters {
		fmt.Fprintf(&text, "---\napiVersion: dispatcher.dev/v1alpha1\nkind: Cluster\nmetadata: {name: cluster-%03[1]d}\nspec: {authentication: {certificate: {commonNames: [cluster-%03[1]d]}}}\n", i)
	}
	for _, kind := range []string{"Mutating", "Validating"} {
		fmt.Fprintf(&text, "---\napiVersion: admissionregistration.k8s.io/v1\nkind: %sWebhookConfiguration\nmetadata: {name: policies}\nwebhooks:\n", kind)
		for i := range webhooks / 2 {
			fmt.Fprintf(&text, "- {name: w%03d.%s.example.com, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: \"https://192.0.2.1/%[2]s/%03[1]d\"}}\n", i, strings.ToLower(kind))
		}
	}
	if err := os.WriteFile(filepath.Join(f.dir, "fleet.yaml"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if problems := f.registry.Load(); len(problems) > 0 {
		t.Fatal(problems)
	}
	transport.NewResolver(transport.ResolverConfig{}).Refresh(t.Context(), f.registry.Targets()...)
	f.clusters = nil
	for _, c := range f.registry.Snapshot().Clusters {
		f.clusters = append(f.clusters, c)
	}
	slices.SortFunc(f.clusters, func(a, b *chain.Cluster) int { return strings.Compare(a.Name, b.Name) })
}

// source is what a process with this fleet says when somebody scrapes.
func (f *fleet) source() metrics.Source {
	return metrics.Source{
		Registry: f.registry,
		InFlight: func() map[string]int {
			busy := map[string]int{}
			for _, c := range f.clusters {
				busy[c.Name] = 1
			}
			return busy
		},
		Connections: func() int { return 1 },
		Aged:        func() int64 { return 1 },
		Limits:      func() metrics.Limits { return metrics.Limits{} },
		Replicas:    func() int { return 3 },
		BodyBytes: func() map[string]int64 {
			held := map[string]int64{}
			for _, c := range f.clusters {
				held[c.Name] = 1
			}
			return held
		},
		Certificates: func() map[string]time.Time {
			return map[string]time.Time{"serving": time.Now(), "client_ca": time.Now(), "webhook_client": time.Now()}
		},
		Objects: func() (all []metrics.Objects) {
			for _, c := range f.clusters[:1] { // where plugins read any
				all = append(all, metrics.Objects{Cluster: c.Name, Resource: "limitranges.v1", Stale: true, Cached: 3, Bytes: 4096, Requests: 5})
			}
			return all
		},
		Namespaces: func() map[string]bool {
			stale := map[string]bool{}
			for _, c := range f.clusters {
				stale[c.Name] = true
			}
			return stale
		},
		Mirror:  func() *mirrorstatus.Mirror { return f.mirror },
		Dropped: func() map[string]int64 { return map[string]int64{"logs": 1, "decisions": 1, "spans": 1} },
	}
}

// record is an admission in which every webhook of the phase came to r.
func (f *fleet) record(c *chain.Cluster, phase chain.Phase, r dispatcher.Result, cause hook.Cause) *dispatcher.Record {
	v := dispatcher.Verdict{Response: codec.Response{Allowed: r != dispatcher.Denied && r != dispatcher.Refused && r != dispatcher.Failed}}
	for i, w := range c.Chain(phase).Webhooks {
		v.Outcomes = append(v.Outcomes, dispatcher.Outcome{Webhook: w, Position: i, Result: r, Cause: cause, Elapsed: time.Millisecond, Operations: 1, Err: errorOf(cause)})
	}
	return f.declined(c, phase, v)
}

// declined is an admission with this Verdict.
func (f *fleet) declined(c *chain.Cluster, phase chain.Phase, v dispatcher.Verdict) *dispatcher.Record {
	return &dispatcher.Record{
		Request: dispatcher.Request{Cluster: c, Phase: phase, Snapshot: "one", Deadline: time.Now().Add(time.Second), Review: &codec.Review{}},
		Verdict: &v, Start: time.Now(), Elapsed: time.Millisecond,
	}
}

func errorOf(cause hook.Cause) error {
	if cause == "" {
		return nil
	}
	return errors.New("no answer")
}
