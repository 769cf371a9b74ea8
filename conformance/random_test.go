// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/conformance/random"
	"github.com/admission-dispatcher/dispatcher/conformance/world"
)

// What `make conformance N=... SEED=...` sets.
const (
	pairsVariable = "CONFORMANCE_N"
	seedVariable  = "CONFORMANCE_SEED"
	// registeredVariable leaves out the Cases that call the dispatcher for everything.
	registeredVariable = "CONFORMANCE_REGISTERED"

	defaultPairs = 3000
	defaultSeed  = 7001 // from which so many pairs reach everything
)

// casesPerProcess is how many Cases one dispatcher has in its registry.
const casesPerProcess = 16

// TestRandom plays random Cases. Each pair that differs must be meant to, and so
// many pairs must have reached every branch of the generator.
func TestRandom(t *testing.T) {
	pairs, seed := number(t, pairsVariable, defaultPairs), number(t, seedVariable, defaultSeed)
	w, err := world.New(binaryPath)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	run := &run{world: w, counters: newCounters(), begin: time.Now(), wanted: pairs}
	for run.pairs < pairs && run.shown < mostShown {
		cases := make([]random.Case, 0, casesPerProcess)
		for left := int(pairs - run.pairs); left > 0 && len(cases) < casesPerProcess; seed++ {
			c := random.New(seed)
			if os.Getenv(registeredVariable) != "" && !c.Registered {
				continue
			}
			cases = append(cases, c)
			left -= random.AdmissionsPerCase
		}
		run.batch(t, cases)
	}
	run.counters.forms(w.Called())
	t.Logf("%d pairs in %v, %d of them different as meant\n%s", run.pairs, time.Since(run.begin).Round(time.Second), run.different, run.counters)
	if pairs >= defaultPairs && os.Getenv(registeredVariable) == "" {
		for _, name := range run.counters.missing() {
			t.Errorf("never reached: %s", name)
		}
	}
}

// number reads a number from the environment.
func number(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// run is what came of all batches so far.
type run struct {
	world    *world.World
	counters *counters
	begin    time.Time
	wanted   uint64

	mu               sync.Mutex
	pairs, different uint64
	failing          []failure // of this batch
	shown            int       // failures made small so far
}

// batch plays cases with one dispatcher.
func (r *run) batch(t *testing.T, cases []random.Case) {
	t.Helper()
	clusters, err := r.world.Start(t.Context(), cases)
	if err != nil {
		t.Fatal(err)
	}
	indices := make(chan int)
	var players sync.WaitGroup
	for range 2 * runtime.GOMAXPROCS(0) {
		players.Go(func() {
			for i := range indices {
				played, err := clusters.Play(t.Context(), i)
				r.add(t, &cases[i], played, err)
			}
		})
	}
	for i := range cases {
		indices <- i
	}
	close(indices)
	players.Wait()
	if err := clusters.Stop(); err != nil {
		t.Error(err)
	}
	r.progress()
	r.report(t)
}

func (r *run) add(t *testing.T, c *random.Case, played []world.Played, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		t.Errorf("seed %d: %v", c.Seed, err)
	}
	for i := range played {
		r.pairs++
		r.counters.add(c, &played[i])
		if len(played[i].Differences) > 0 {
			r.different++
		}
		if f, ok := failureOf(*c, &played[i]); ok {
			r.failing = append(r.failing, f)
		}
	}
}

// progress tells of a long run on standard error.
func (r *run) progress() {
	if r.wanted > defaultPairs {
		elapsed := time.Since(r.begin)
		fmt.Fprintf(os.Stderr, "%d of %d pairs, %.0f a second\n", r.pairs, r.wanted, float64(r.pairs)/elapsed.Seconds())
	}
}
