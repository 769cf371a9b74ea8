// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/adversary"
	"github.com/admission-dispatcher/dispatcher/loadtest/history"
	"github.com/admission-dispatcher/dispatcher/loadtest/load"
	"github.com/admission-dispatcher/dispatcher/loadtest/script"
)

// attacker is the cluster that means harm. The calls of the others are judged as
// if there were none: nothing is excused.
const attacker = "east"

// attackerUIDs begins the uids of its calls.
const attackerUIDs = "attack"

// attacks are the rows of the matrix in which somebody means harm.
var attacks = []row{
	{id: "G1", what: "objects padded with escaped characters", rate: 1, timeout: 10, filler: load.Escapes, bytes: 9 << 20, during: 4 * time.Second},
	{id: "G2", what: "a cluster whose requests fail, 100 a second", timeout: 5, rate: 10, during: 5 * time.Second,
		fault: watched(script.Behaviour{Form: script.Persuasive, Cluster: attacker}), check: noneForAll, attack: flood(100), within: 200 * time.Millisecond},
	{id: "G3", what: "a cluster whose deadlines are too short", rate: 10, timeout: 5, during: 8 * time.Second,
		fault: watched(script.Behaviour{Delay: 1500 * time.Millisecond, Cluster: attacker}), check: noneForAll, attack: flood(40, hasty), within: 200 * time.Millisecond},
	{id: "G4", what: "a cluster that fails on 500 resources", timeout: 5, rate: 10, during: 5 * time.Second,
		fault: watched(script.Behaviour{Form: script.NotJSON, Cluster: attacker}), check: noneForAll, attack: flood(100, inventive(500)), within: 200 * time.Millisecond},
	{id: "G5", what: "a cluster that takes all connections", timeout: 5, rate: 10, process: "limits: {connections: 100}\n", during: 5 * time.Second,
		attack: adversary.Silent(150), within: time.Second},
	{id: "G6", what: "strangers that take all connections", timeout: 5, rate: 10, process: "limits: {connections: 100}\n", during: 5 * time.Second,
		attack: adversary.Strangers(150), stranger: true, within: time.Second},
	{id: "G7", what: "a cluster that takes all calls of an endpoint", rate: 10, timeout: 10, process: "limits: {callsPerEndpoint: 32}\n", during: 6 * time.Second,
		fault: behave(script.Behaviour{Delay: 3 * time.Second, Cluster: attacker}), attack: flood(100), within: 500 * time.Millisecond},
	{id: "G8", what: "bodies that are announced and held", timeout: 5, rate: 10, during: 6 * time.Second,
		attack: together(adversary.Announce(sized(200, 2000), 32<<20), adversary.Withhold(sized(32, 96), 8<<20)), memory: 768 << 20, within: time.Second},
	{id: "G9", what: "compressed bodies that expand", timeout: 5, rate: 10, process: "limits: {decompressRequests: true}\n", during: 4 * time.Second,
		attack: adversary.Bomb(sized(16, 384), 32<<20), memory: 768 << 20, within: time.Second},
	{id: "G10", what: "callers that send and read slowly, or stall", timeout: 5, rate: 10, during: 8 * time.Second, process: fmt.Sprintf("timeouts: {headers: %v, body: %[1]v}\n", slowHave),
		attack: together(adversary.Drip(200, 200*time.Millisecond), adversary.Deaf(32, 50*time.Millisecond), adversary.Stall(sized(200, 700), 30<<10)), memory: 256 << 20, within: time.Second, check: slowIsClosed},
	{id: "G11", what: "denials that break a formality", timeout: 5, rate: 20, during: 4 * time.Second, fault: sloppy},
	{id: "G12", what: "objects that cost time to patch", rate: 10, during: 6 * time.Second, phases: []history.Phase{history.Mutating}, hooks: fourThatPatch,
		attack: flood(3, heavy), memory: 1 << 30, within: time.Second},
}

// slowHave is the time that a head has to come, and a body.
const slowHave = 3 * time.Second

// slowIsClosed: nobody is borne with for much longer than that.
func slowIsClosed(t *findings, _ *world, rec *record) {
	took := time.Duration(rec.tally.Longest.Load())
	progress("G10  the slowest request was borne with for %v", took.Round(time.Millisecond))
	if took < slowHave/2 || took > slowHave+time.Second+quantile(rec.waits(), 0.9) {
		t.Errorf("a request that comes slowly is borne with for %v, it has %v", took, slowHave)
	}
}

// watched makes the webhooks answer so, and looks at the circuits meanwhile.
func watched(b script.Behaviour) func(*world) {
	return func(w *world) {
		behave(b)(w)
		watchCircuits(w)
	}
}

// flood makes admissions as the attacker, at a rate.
func flood(rate float64, how ...func(*load.Config)) adversary.Attack {
	cfg := load.Config{Start: time.Now(), Rate: rate, Timeout: 10 * time.Second, Seed: seed, Prefix: attackerUIDs}
	for _, set := range how {
		set(&cfg)
	}
	return adversary.Flood(cfg)
}

// hasty asks with the shortest timeout that can be asked with.
func hasty(cfg *load.Config) { cfg.Timeout, cfg.Bytes = time.Second, 200<<10 }

// inventive asks about n resources that nobody else knows.
func inventive(n int) func(*load.Config) {
	return func(cfg *load.Config) {
		for i := range n {
			cfg.Resources = append(cfg.Resources, load.Resource{Group: "example.com", Version: "v1", Resource: fmt.Sprintf("things%d", i), Kind: "Thing", Namespace: "shop", User: "user"})
		}
	}
}

// heavy asks the mutating webhooks about a list of 1.4 million numbers.
func heavy(cfg *load.Config) {
	cfg.Bytes, cfg.Filler, cfg.Phases = 2_900_000, load.Zeros, []history.Phase{history.Mutating}
}

var fourThatPatch = func() []history.Webhook {
	var all []history.Webhook
	for i := range 4 {
		name := fmt.Sprintf("well-%d.example.com", i)
		all = append(all, history.Webhook{Name: name, Phase: history.Mutating, Order: i, FailurePolicy: history.Fail, SideEffects: history.NoSideEffects,
			Timeout: 10 * time.Second, Truth: costly(name)})
	}
	return all
}()

// costly is the usual truth, and patches the attacker's list from its beginning, so
// that each operation moves all numbers in it.
func costly(webhook string) func(uid string) history.Answer {
	const operation = `{"op":"add","path":"/spec/filler/0","value":1}`
	usual, patch := script.Mutating(webhook), []byte("["+operation+strings.Repeat(","+operation, 19)+"]")
	return func(uid string) history.Answer {
		if strings.HasPrefix(uid, attackerUIDs) {
			return history.Answer{Allowed: true, Patch: patch}
		}
		return usual(uid)
	}
}

// sloppy answers with the truth in one odd form after the other.
func sloppy(w *world) {
	forms := []script.Form{script.Page, script.Created}
	w.every(500*time.Millisecond, 8, func(i int) { behave(script.Behaviour{Form: forms[i%len(forms)]})(w) })
}

// together makes one attack of several.
func together(list ...adversary.Attack) adversary.Attack {
	return func(ctx context.Context, t adversary.Target, tally *adversary.Tally) {
		done := make(chan struct{})
		for _, a := range list {
			go func() {
				defer func() { done <- struct{}{} }()
				a(ctx, t, tally)
			}()
		}
		for range list {
			<-done
		}
	}
}

// suffer has the attack go on for as long as the fault, and looks how large the
// process becomes.
func (r *row) suffer(t *testing.T, w *world, rec *record) {
	t.Helper()
	target := adversary.Target{Address: w.front.Addr(), Cluster: attacker, TLS: w.clusters[0].TLS.Clone()}
	if r.stranger {
		target.TLS.Certificates = nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), r.broken())
	defer cancel()
	over := make(chan struct{})
	grows := w.grows(ctx)
	go func() {
		defer close(over)
		r.attack(ctx, target, &rec.tally)
	}()
	rec.grown = <-grows
	<-over
	progress("%-4s %d connections and %d requests of the attacker, the process grew by %d MiB", r.id, rec.tally.Connections.Load(), rec.tally.Requests.Load(), rec.grown>>20)
	if rec.tally.Connections.Load()+rec.tally.Requests.Load() == 0 {
		rec.errorf("nobody attacked")
	}
	r.fits(rec)
}

// fits: the process has not grown by more than the row says.
func (r *row) fits(rec *record) {
	if r.memory > 0 && rec.grown > r.memory {
		rec.errorf("the process grew by %d MiB, the bound is %d", rec.grown>>20, r.memory>>20)
	}
}

// grows sends by how many bytes the first process grows at most, from now until ctx
// ends.
func (w *world) grows(ctx context.Context) <-chan int64 {
	before, most := resident(w.servers[0]), make(chan int64, 1)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		grown := int64(0)
		for {
			grown = max(grown, resident(w.servers[0])-before)
			select {
			case <-ctx.Done():
				most <- grown
				return
			case <-tick.C:
			}
		}
	}()
	return most
}

// resident is the memory that a process holds, in bytes; 0 where nobody says.
func resident(d *dispatcher) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.ID()))
	for line := range strings.Lines(string(status)) {
		var kB int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kB); err == nil {
			return kB << 10
		}
	}
	return 0
}
