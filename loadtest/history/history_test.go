// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

const (
	seeds        = 25
	callsPerSeed = 500
)

// TestCorrectDispatcher: nothing is found where nothing is wrong.
func TestCorrectDispatcher(t *testing.T) {
	answers := map[string]int{}
	for seed := range uint64(seeds) {
		world, calls, attempts := simulate(seed, callsPerSeed, none)
		if found := Check(world, calls, attempts); len(found) > 0 {
			t.Fatalf("seed %d: %s", seed, short(found))
		}
		for i := range calls {
			answers[sort(&calls[i])]++
		}
	}
	t.Log(answers)
	for _, s := range []string{"exempt", "lost", "shed", "allowed", "patched", "failed open", "denied 0", "denied 1", "denied 2"} {
		if answers[s] < seeds/2 {
			t.Errorf("only %d answers of the sort %q: the simulation proves little", answers[s], s)
		}
	}
}

// sort names what an answer is like.
func sort(c *Call) string {
	said := c.testimony()
	switch {
	case c.Exempt:
		return "exempt"
	case c.Err != "":
		return "lost"
	case c.Code == 429 && len(said.lines) == 0:
		return "shed"
	case !c.Allowed:
		return fmt.Sprint("denied ", min(2, int(said.lines[0].kind)))
	case len(ofKind(said.rest, saidFailedOpen)) > 0:
		return "failed open"
	case len(c.Patch) > 0:
		return "patched"
	}
	return "allowed"
}

// TestSeededBugs: each bug is caught, by the rule that is there for it.
func TestSeededBugs(t *testing.T) {
	for b := none + 1; b < bugs; b++ {
		t.Run(b.String(), func(t *testing.T) {
			caught := map[Rule]int{}
			for seed := uint64(0); seed < seeds && caught[b.rule()] == 0; seed++ {
				for _, f := range Check(simulate(seed, callsPerSeed, b)) {
					caught[f.Rule]++
				}
			}
			t.Logf("%-29s -> %-17s %4d findings", b, b.rule(), caught[b.rule()])
			if caught[b.rule()] == 0 {
				t.Errorf("caught by %v only", caught)
			}
		})
	}
}

// TestDeterministic: one seed, one list of findings.
func TestDeterministic(t *testing.T) {
	first := Check(simulate(1, callsPerSeed, failOpens))
	for range 3 {
		if again := Check(simulate(1, callsPerSeed, failOpens)); !slices.Equal(first, again) {
			t.Fatalf("first %s, then %s", short(first), short(again))
		}
	}
}

// TestVersion: a webhook that is asked as another version than the Snapshot has is
// asked wrongly, be its verdict the same.
func TestVersion(t *testing.T) {
	yes := func(string) Answer { return Answer{Allowed: true} }
	w := World{Limits: DefaultLimits(), Snapshots: []Snapshot{{Until: time.Minute, Webhooks: []Webhook{
		{Name: "policy.example.com", Version: "2", Phase: Validating, FailurePolicy: Fail, Timeout: time.Second, Truth: yes},
	}}}}
	calls := []Call{{UID: "u", UIDAnswered: "u", Phase: Validating, Timeout: time.Second, Done: 9 * ms, Status: 200, Allowed: true}}
	for version, want := range map[string]int{"2": 0, "1": 1, "": 1} {
		found := Check(w, calls, []Attempt{{UID: "u", Webhook: "policy.example.com", Version: version, Arrived: 2 * ms, Answered: 3 * ms, Intact: true}})
		if len(found) != want || want > 0 && found[0].Rule != Misrouted {
			t.Errorf("asked as version %q: %v", version, found)
		}
	}
}
