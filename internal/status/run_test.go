// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/status"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// one is a Registry with one cluster and one Target.
type one struct {
	nothing
	target *transport.Target
}

func (one) Snapshot() *registry.Snapshot {
	return &registry.Snapshot{Hash: "abc", Compiled: compile.Compiled{Clusters: map[string]*chain.Cluster{"west": {Name: "west"}}}}
}

func (o one) Targets() []*transport.Target { return []*transport.Target{o.target} }

// While it runs, a Collector samples every ten seconds and forgets clusters that
// have gone; it ends with its context.
func TestRun(t *testing.T) {
	target, err := transport.NewTarget(transport.TargetSpec{URL: "https://w.example.com/"})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		c := status.New(status.Config{Registry: one{target: target}, Unready: func() []string { return nil }})
		west := record("p", false, dispatcher.Outcome{Result: dispatcher.Denied})
		west.Cluster = &chain.Cluster{Name: "west"}
		c.Observe(t.Context(), west)
		c.Observe(t.Context(), record("p", true))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.Run(ctx)
		}()
		timer := time.NewTimer(35 * time.Second)
		<-timer.C
		stop()
		<-done
		s := c.Status()
		if got := s.Clusters[0].Counts; got.Admissions != 1 || got.Denied != 1 || got.Last.IsZero() {
			t.Errorf("counts are %+v", got)
		}
		if n := c.Samples(target); n != 3 {
			t.Errorf("%d samples in 35 seconds", n)
		}
	})
}
