// SPDX-License-Identifier: Apache-2.0

package breaker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/breaker"
)

// advance lets virtual time pass.
func advance(d time.Duration) { <-time.After(d) }

// middle takes the jitter out: every time is as configured.
func middle() float64 { return 0.5 }

// attempt makes one that is allowed and ends at once.
func attempt(t *testing.T, b *breaker.Breaker, resource string, r breaker.Result) {
	t.Helper()
	allow(t, b, resource).Done(r)
}

func attempts(t *testing.T, b *breaker.Breaker, resource string, n int, r breaker.Result) {
	t.Helper()
	for range n {
		attempt(t, b, resource, r)
	}
}

func allow(t *testing.T, b *breaker.Breaker, resource string) *breaker.Ticket {
	t.Helper()
	ticket, ok := b.Allow(east, resource)
	if !ok {
		t.Fatalf("%s: refused while %v", resource, b.StateOf(east, resource))
	}
	return &ticket
}

func refuse(t *testing.T, b *breaker.Breaker, resource string) {
	t.Helper()
	if _, ok := b.Allow(east, resource); ok {
		t.Fatalf("%s: allowed", resource)
	}
}

func wantState(t *testing.T, b *breaker.Breaker, want breaker.State) {
	t.Helper()
	if got := b.State(); got != want {
		t.Fatalf("the Endpoint is %v, want %v", got, want)
	}
}

func wantStateOf(t *testing.T, b *breaker.Breaker, resource string, want breaker.State) {
	t.Helper()
	if got := b.StateOf(east, resource); got != want {
		t.Fatalf("%s is %v, want %v", resource, got, want)
	}
}

// opened returns a Breaker that has opened just now.
func opened(t *testing.T, s breaker.Settings) *breaker.Breaker {
	t.Helper()
	if s.Rand == nil {
		s.Rand = middle
	}
	b := breaker.New(s)
	attempts(t, b, pods, 3, breaker.ConnectFailure)
	wantState(t, b, breaker.Open)
	return b
}

const (
	east    = "east"
	west    = "west"
	north   = "north"
	pods    = "pods"
	secrets = "secrets"
	deploys = "apps/deployments"
)

func TestOpensAtTheRatio(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{})
		attempts(t, b, pods, 5, breaker.Success)
		attempts(t, b, pods, 9, breaker.Failure)
		wantStateOf(t, b, pods, breaker.Closed)
		attempt(t, b, pods, breaker.Failure)
		wantStateOf(t, b, pods, breaker.Open)
		wantState(t, b, breaker.Closed)
		refuse(t, b, pods)
	})
}

func TestTheWindowRolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{})
		attempts(t, b, pods, 9, breaker.Failure)
		advance(10 * time.Second)
		if got := b.Status(); got.Requests != 0 || got.Failures != 0 {
			t.Errorf("after a window: %+v", got)
		}
		attempt(t, b, pods, breaker.Failure)
		wantStateOf(t, b, pods, breaker.Closed)
	})
}

// An attempt that hangs for longer than the window still counts when it ends.
func TestOutcomesCountWhenTheyAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{})
		var tickets []*breaker.Ticket
		for range 10 {
			tickets = append(tickets, allow(t, b, pods))
		}
		advance(30 * time.Second)
		for _, ticket := range tickets {
			ticket.Done(breaker.Failure)
		}
		wantStateOf(t, b, pods, breaker.Open)
	})
}

func TestDenialsAndExcludedOpenNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{})
		attempts(t, b, pods, 100, breaker.Of(breaker.Denied))
		attempts(t, b, pods, 100, breaker.Of(breaker.HedgeLost))
		wantState(t, b, breaker.Closed)
		attempts(t, b, pods, 100, breaker.Of(breaker.NotSent+1)) // no Kind
		if got := b.Status(); got.Requests != 100 || got.Failures != 0 {
			t.Errorf("%+v, want 100 requests", got)
		}
	})
}

func TestAFewResetsAmongSuccessesOpenNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{})
		for range 20 {
			attempts(t, b, pods, 10, breaker.Success)
			advance(time.Millisecond)
			attempts(t, b, pods, 3, breaker.ConnectFailure)
			advance(time.Millisecond)
		}
		wantState(t, b, breaker.Closed)
		advance(100 * time.Millisecond)
		attempt(t, b, pods, breaker.ConnectFailure)
		wantState(t, b, breaker.Open)
	})
}

func TestOpenTimeDoublesPerFailedProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := opened(t, breaker.Settings{})
		for _, seconds := range []time.Duration{5, 10, 20, 40, 60, 60} {
			advance(seconds*time.Second - 1)
			wantState(t, b, breaker.Open)
			advance(1)
			wantState(t, b, breaker.HalfOpen)
			attempt(t, b, pods, breaker.ConnectFailure)
		}
	})
}

func TestOpenTimeIsJittered(t *testing.T) {
	for random, want := range map[float64]time.Duration{0: 4 * time.Second, 0.5: 5 * time.Second, 0.75: 5500 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			b := opened(t, breaker.Settings{Rand: func() float64 { return random }})
			if got := time.Until(b.Status().Until); got != want {
				t.Errorf("at %v: open for %v, want %v", random, got, want)
			}
		})
	}
}

func TestAnExcludedProbeMakesPlaceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := opened(t, breaker.Settings{})
		advance(5 * time.Second)
		attempt(t, b, pods, breaker.Excluded)
		attempt(t, b, pods, breaker.Success)
		wantState(t, b, breaker.Ramping)
	})
}

func TestRampDoublesUntilClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := opened(t, breaker.Settings{RampWidth: 16})
		advance(5 * time.Second)
		attempt(t, b, pods, breaker.Success)
		for width := 1; width < 16; width *= 2 {
			if got := b.Status(); got.State != breaker.Ramping || got.Width != width {
				t.Fatalf("%+v, want a width of %d", got, width)
			}
			var tickets []*breaker.Ticket
			for range width {
				tickets = append(tickets, allow(t, b, pods))
			}
			refuse(t, b, pods)
			for _, ticket := range tickets {
				ticket.Done(breaker.Success)
			}
		}
		wantState(t, b, breaker.Closed)
	})
}

func TestAFailureEndsTheRamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := opened(t, breaker.Settings{})
		advance(5 * time.Second)
		attempts(t, b, pods, 3, breaker.Success)
		late := allow(t, b, pods)
		attempt(t, b, pods, breaker.ConnectFailure)
		wantState(t, b, breaker.Open)
		late.Done(breaker.Success)
		advance(5 * time.Second)
		wantState(t, b, breaker.HalfOpen)
	})
}

func TestAStuckRampOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := opened(t, breaker.Settings{})
		advance(5 * time.Second)
		attempt(t, b, pods, breaker.Success)
		allow(t, b, pods)
		advance(2*time.Second - 1)
		wantState(t, b, breaker.Ramping)
		advance(1)
		wantState(t, b, breaker.Open)
		advance(5 * time.Second)
		wantState(t, b, breaker.HalfOpen)
	})
}

func TestOutcomesFromBeforeOpeningCountForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{Rand: middle, RampWidth: 1})
		var late []*breaker.Ticket
		for range 20 {
			late = append(late, allow(t, b, pods))
		}
		attempts(t, b, pods, 3, breaker.ConnectFailure)
		advance(5 * time.Second)
		late[0].Done(breaker.Failure)
		wantState(t, b, breaker.HalfOpen)
		attempt(t, b, pods, breaker.Success)
		for _, ticket := range late[1:] {
			ticket.Done(breaker.Failure)
		}
		wantState(t, b, breaker.Closed)
		if got := b.Status(); got.Requests != 0 {
			t.Errorf("%+v, want no requests", got)
		}
	})
}

func TestForcedAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := opened(t, breaker.Settings{})
		forced, ok := b.AllowForced(east, pods)
		if !ok {
			t.Fatal("the first one is refused")
		}
		if advance(100 * time.Millisecond); forcedOK(b) {
			t.Fatal("a second one at a time is allowed")
		}
		forced.Done(breaker.ConnectFailure)
		wantState(t, b, breaker.Open)
		forced, ok = b.AllowForced(east, pods)
		if !ok {
			t.Fatal("none after the interval")
		}
		forced.Done(breaker.Excluded)
		if forcedOK(b) {
			t.Fatal("another one within the interval")
		}
		advance(100 * time.Millisecond)
		forced, _ = b.AllowForced(east, pods)
		forced.Done(breaker.Success)
		wantState(t, b, breaker.Ramping)
	})
}

func TestAHungForcedAttemptIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := opened(t, breaker.Settings{OpenTime: time.Minute})
		hung, _ := b.AllowForced(east, pods)
		advance(2*time.Second - 1)
		if forcedOK(b) {
			t.Fatal("a second one before the first is given up")
		}
		advance(1)
		next, ok := b.AllowForced(east, pods)
		if !ok {
			t.Fatal("the hung one blocks for ever")
		}
		hung.Done(breaker.ConnectFailure)
		if advance(time.Second); forcedOK(b) {
			t.Fatal("the end of the one given up made place for a third")
		}
		next.Done(breaker.Success)
		wantState(t, b, breaker.Ramping)
	})
}

// A cluster that was let through by force is known for one Window, and is forgotten as
// soon as somebody asks one Window after clusters were looked at last.
func TestForcedAttemptsAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window = 10 * time.Second
		b := opened(t, breaker.Settings{Window: window, OpenTime: time.Hour, MaxOpenTime: time.Hour})
		for _, step := range []struct {
			pause time.Duration
			force bool
			known int
		}{
			{0, true, 1},
			{window, false, 1},
			{1, false, 1}, // it was looked at just now
			{window - 1, false, 0},
			{0, true, 1},
			{window / 2, true, 1},
			{window/2 + 1, false, 1},
			{window, false, 0},
		} {
			advance(step.pause)
			if step.force {
				ticket, ok := b.AllowForced(east, pods)
				if !ok {
					t.Fatal("refused")
				}
				ticket.Done(breaker.Excluded)
			}
			if b.State(); b.Remembered() != step.known {
				t.Errorf("%+v: %d clusters are known", step, b.Remembered())
			}
		}
	})
}

// A probe that was given up is a failed one: if the next one fails, the circuit is open
// for four times as long as at first.
func TestAProbeGivenUpHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := opened(t, breaker.Settings{})
		advance(5 * time.Second)
		hung := allow(t, b, pods)
		advance(2 * time.Second)
		allow(t, b, pods).Done(breaker.ConnectFailure)
		advance(20*time.Second - 1)
		wantState(t, b, breaker.Open)
		advance(1)
		wantState(t, b, breaker.HalfOpen)
		hung.Done(breaker.Excluded)
	})
}

// A forced attempt that passes a ramp which is full neither widens it nor is without
// effect if it fails.
func TestForcedAttemptsOnARamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := opened(t, breaker.Settings{})
		advance(5 * time.Second)
		attempt(t, b, pods, breaker.Success)
		allow(t, b, pods) // takes the only place
		for _, end := range []struct {
			result breaker.Result
			want   breaker.State
		}{{breaker.Success, breaker.Ramping}, {breaker.Excluded, breaker.Ramping}, {breaker.ConnectFailure, breaker.Open}} {
			forced, ok := b.AllowForced(east, pods)
			if !ok {
				t.Fatal("it is refused")
			}
			forced.Done(end.result)
			if wantState(t, b, end.want); end.want == breaker.Ramping && b.Status().Width != 1 {
				t.Errorf("after %v: %+v", end.result, b.Status())
			}
			advance(100 * time.Millisecond)
		}
	})
}

// A forced attempt is the probe of a circuit on its way that waits for one, although
// another circuit refuses it.
func TestForcedAttemptsProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := opened(t, breaker.Settings{RampWidth: 1 << 20})
		advance(5 * time.Second)
		for range 10 { // connections are well, answers about pods are not
			ticket := allow(t, b, pods)
			ticket.Reached()
			ticket.Done(breaker.Failure)
		}
		refuse(t, b, pods)
		advance(5 * time.Second) // pods wait for a probe
		for range b.Status().Width {
			if _, ok := b.Allow(west, secrets); !ok {
				t.Fatal("west is refused on the ramp")
			}
		}
		forced, ok := b.AllowForced(east, pods)
		if !ok {
			t.Fatal("it is refused")
		}
		forced.Done(breaker.Failure)
		got := b.Status().Circuits
		if len(got) != 1 || got[0].State != breaker.Open || time.Until(got[0].Until) != 10*time.Second {
			t.Errorf("after a probe that has failed: %+v", got)
		}
	})
}

// That a connection came about counts once.
func TestReachedCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := opened(t, breaker.Settings{})
		advance(5 * time.Second)
		attempt(t, b, pods, breaker.Success)
		for _, want := range []int{2, 2, 4} { // places after 1, 1 and 2 attempts
			ticket := allow(t, b, pods)
			ticket.Reached()
			ticket.Reached()
			if got := b.Status().Width; got != want {
				t.Errorf("the width is %d, want %d", got, want)
			}
		}
		new(breaker.Ticket).Done(breaker.Failure) // of no Breaker
	})
}

// A probe that was given up has no effect, also where nobody has looked meanwhile.
func TestALateProbeHasNoEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{Rand: middle})
		attempts(t, b, pods, 10, breaker.Failure)
		advance(5 * time.Second)
		late := allow(t, b, pods)
		advance(2 * time.Second)
		late.Done(breaker.Success)
		wantStateOf(t, b, pods, breaker.HalfOpen)
	})
}

// A circuit that is open is not forgotten, however long nobody asks.
func TestOpenCircuitsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{Rand: middle, OpenTime: time.Minute})
		attempts(t, b, pods, 10, breaker.Failure)
		for range 5 {
			advance(11 * time.Second)
			refuse(t, b, pods)
		}
		advance(5 * time.Second)
		allow(t, b, pods)
	})
}

func forcedOK(b *breaker.Breaker) bool {
	_, ok := b.AllowForced(east, pods)
	return ok
}

func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{Rand: middle})
		start := time.Now()
		attempts(t, b, secrets, 10, breaker.Success)
		attempts(t, b, pods, 10, breaker.Failure)
		want := breaker.Status{State: breaker.Closed, Since: start, Requests: 20, Failures: 10, Circuits: []breaker.CircuitStatus{
			{Cluster: east, Resource: pods, State: breaker.Open, Until: start.Add(5 * time.Second)},
		}}
		if diff := cmp.Diff(want, b.Status()); diff != "" {
			t.Error(diff)
		}
		advance(5 * time.Second)
		if got := b.Status().Circuits; len(got) != 1 || got[0].State != breaker.HalfOpen {
			t.Errorf("%+v, want half-open", got)
		}
		attempts(t, b, secrets, 3, breaker.ConnectFailure)
		opened := time.Now()
		want = breaker.Status{State: breaker.Open, Since: opened, Until: opened.Add(5 * time.Second)}
		if diff := cmp.Diff(want, b.Status()); diff != "" {
			t.Error(diff)
		}
		advance(time.Hour)
		want = breaker.Status{State: breaker.HalfOpen, Since: opened.Add(5 * time.Second), Width: 1}
		if diff := cmp.Diff(want, b.Status()); diff != "" {
			t.Error(diff)
		}
	})
}
