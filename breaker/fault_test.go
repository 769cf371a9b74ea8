// SPDX-License-Identifier: Apache-2.0

package breaker_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/breaker"
)

// Tests of rows of the fault matrix carry the row's number.

func TestF1RefusedOpensAfterThree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{})
		attempts(t, b, pods, 2, breaker.Of(breaker.Refused))
		wantState(t, b, breaker.Closed)
		attempt(t, b, pods, breaker.Of(breaker.Refused))
		wantState(t, b, breaker.Open)
	})
}

// A busy Endpoint dies: a tenth of a second without success is enough.
func TestF1RefusedUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{})
		attempts(t, b, pods, 10_000, breaker.Success)
		for range 100 {
			advance(time.Millisecond)
			attempt(t, b, pods, breaker.Of(breaker.Refused))
		}
		wantState(t, b, breaker.Open)
	})
}

func TestF3BlackHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{})
		var tickets []*breaker.Ticket
		for range 50 {
			tickets = append(tickets, allow(t, b, pods))
		}
		advance(time.Second) // the connect cap
		for _, ticket := range tickets {
			ticket.Done(breaker.Of(breaker.ConnectTimedOut))
		}
		wantState(t, b, breaker.Open)
	})
}

func TestF11HangsOnOneResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{Rand: middle, RampWidth: 4})
		attempts(t, b, pods, 10, breaker.Of(breaker.TimedOut))
		wantStateOf(t, b, pods, breaker.Open)
		refuse(t, b, pods)
		wantStateOf(t, b, secrets, breaker.Closed)
		attempts(t, b, secrets, 3, breaker.Success)
		// Noise on another resource opens nothing more now.
		attempt(t, b, secrets, breaker.Failure)
		wantStateOf(t, b, secrets, breaker.Closed)
		attempts(t, b, deploys, 10, breaker.Success)

		advance(5 * time.Second)
		wantStateOf(t, b, pods, breaker.HalfOpen)
		attempt(t, b, pods, breaker.Success)
		attempts(t, b, pods, 3, breaker.Success)
		wantStateOf(t, b, pods, breaker.Closed)
	})
}

func TestF11LateOutcomesDoNotReachTheNextState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{Rand: middle})
		late := allow(t, b, pods)
		attempts(t, b, secrets, 10, breaker.Success)
		attempts(t, b, pods, 10, breaker.Failure)
		advance(5 * time.Second)
		probe := allow(t, b, pods)
		late.Done(breaker.Success)
		wantStateOf(t, b, pods, breaker.HalfOpen)
		refuse(t, b, pods)
		probe.Done(breaker.Success)
		wantStateOf(t, b, pods, breaker.Ramping)
	})
}

func TestF11AnotherResourceFailsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{})
		attempts(t, b, pods, 9, breaker.Failure)
		wantStateOf(t, b, deploys, breaker.Closed)
		attempt(t, b, secrets, breaker.Failure)
		wantStateOf(t, b, deploys, breaker.Open)
		wantState(t, b, breaker.Closed)
	})
}

// What nothing else is known of is the resource's alone.
func TestF11TheOnlyResourceSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{})
		attempts(t, b, pods, 10, breaker.Failure)
		wantStateOf(t, b, pods, breaker.Open)
		wantStateOf(t, b, secrets, breaker.Closed)
	})
}

// The cluster's circuit opens, although one resource failed much more than the
// others.
func TestF11OneOpenAndTheOthersFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{})
		attempts(t, b, pods, 10, breaker.Failure)
		attempts(t, b, secrets, 2, breaker.Success)
		attempt(t, b, secrets, breaker.Failure)
		wantStateOf(t, b, secrets, breaker.Closed)
		attempt(t, b, secrets, breaker.Failure)
		wantStateOf(t, b, deploys, breaker.Open)
		wantState(t, b, breaker.Closed)
	})
}

func TestF11ManyResourcesShareOneCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{})
		for i := range 32 {
			attempts(t, b, fmt.Sprint("resource", i), 1, breaker.Failure)
			attempts(t, b, fmt.Sprint("resource", i), 2, breaker.Success)
		}
		attempts(t, b, "one more", 5, breaker.Failure)
		attempts(t, b, "and another", 5, breaker.Failure)
		wantStateOf(t, b, "a third", breaker.Open)
		if got := b.Status().Circuits; len(got) != 1 || got[0].Cluster != east || got[0].Resource != "other" {
			t.Errorf("not closed: %+v, want other", got)
		}
		attempts(t, b, "resource0", 7, breaker.Failure) // 8 of 10
		refuse(t, b, "resource0")
	})
}

// A resource that fails takes the place of one that nobody has asked about for a
// window, and only of one such.
func TestAnIdleResourceMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{})
		for i := range 32 {
			attempts(t, b, fmt.Sprint("resource", i), 1, breaker.Failure)
			attempts(t, b, fmt.Sprint("resource", i), 2, breaker.Success)
		}
		for second := range 7 { // all but the first are asked about
			advance(2 * time.Second)
			for i := 1; i < 32; i++ {
				attempt(t, b, fmt.Sprint("resource", i), breaker.Success)
			}
			attempts(t, b, "resource1", second%2, breaker.Failure) // or the cluster would be forgotten
		}
		attempts(t, b, "one more", 10, breaker.Failure)
		attempts(t, b, "and another", 10, breaker.Failure)
		var open []string
		for _, c := range b.Status().Circuits {
			open = append(open, c.Resource)
		}
		if diff := cmp.Diff([]string{"one more", "other"}, open); diff != "" {
			t.Errorf("open (-want +got):\n%s", diff)
		}
	})
}

// Of two resources that fail as often, the one that does nothing else is the exception.
func TestTheWorstResourceIsTheException(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{})
		attempt(t, b, secrets, breaker.Failure)
		attempts(t, b, secrets, 12, breaker.Success)
		attempts(t, b, pods, 9, breaker.Failure)
		attempts(t, b, secrets, 8, breaker.Failure)
		wantStateOf(t, b, deploys, breaker.Closed)
	})
}

func TestF18OneProbePerOpenPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := opened(t, breaker.Settings{Rand: middle})
		since, periods, probes := b.Status().Since, 1, 0
		for range 60_000 {
			ticket, ok := b.Allow(east, pods)
			advance(time.Millisecond)
			if ok {
				probes++
				ticket.Done(breaker.Of(breaker.Refused))
			}
			if s := b.Status(); s.State == breaker.Open && s.Since != since {
				since = s.Since
				periods++
			}
		}
		if probes != periods-1 || probes != 3 { // after 5, 10 and 20 s
			t.Errorf("%d probes in %d periods", probes, periods)
		}
	})
}

// One second up, one second down, with forced attempts: hardly any time that it
// is up is lost.
func TestF18FlappingIsFollowedByForcedAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{})
		start, good, up := time.Now(), 0, 0
		for range 20_000 {
			isUp := int(time.Since(start)/time.Second)%2 == 0
			if isUp {
				up++
			}
			ticket, ok := b.Allow(east, pods)
			if !ok {
				ticket, ok = b.AllowForced(east, pods)
			}
			switch {
			case ok && isUp:
				good++
				ticket.Done(breaker.Success)
			case ok:
				ticket.Done(breaker.Of(breaker.Refused))
			}
			advance(time.Millisecond)
		}
		if share := float64(good) / float64(up); share < 0.9 {
			t.Errorf("%d of %d calls while up were good", good, up)
		}
	})
}

func TestF19RecoversWithARamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := opened(t, breaker.Settings{})
		for b.State() == breaker.Open {
			advance(time.Second)
		}
		attempt(t, b, pods, breaker.Success)
		start := time.Now()
		for b.State() != breaker.Closed {
			var tickets []*breaker.Ticket
			for ticket, ok := b.Allow(east, pods); ok; ticket, ok = b.Allow(east, pods) {
				tickets = append(tickets, &ticket)
			}
			advance(20 * time.Millisecond)
			for _, ticket := range tickets {
				ticket.Done(breaker.Success)
			}
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("the ramp took %v", took)
		}
	})
}

func TestF20AHungProbeBlocksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := opened(t, breaker.Settings{})
		advance(5 * time.Second)
		hung := allow(t, b, pods)
		refuse(t, b, pods)
		advance(2*time.Second - 1)
		refuse(t, b, pods)
		advance(1)
		probe := allow(t, b, pods)
		hung.Done(breaker.Failure)
		wantState(t, b, breaker.HalfOpen)
		refuse(t, b, pods)
		probe.Done(breaker.Success)
		wantState(t, b, breaker.Ramping)
		hung = allow(t, b, pods)
		refuse(t, b, pods)
		hung.Done(breaker.Success)
	})
}

// A webhook that needs three seconds for each answer is found to be well.
func TestF20ProbesBecomeMorePatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := opened(t, breaker.Settings{RampWidth: 2})
		advance(5 * time.Second)
		allow(t, b, pods)
		advance(2 * time.Second)
		for range 2 { // the second probe and the ramp
			ticket := allow(t, b, pods)
			advance(3 * time.Second)
			ticket.Done(breaker.Success)
		}
		wantState(t, b, breaker.Closed)
	})
}

func TestF33OurOwnPauseOpensNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(breaker.Settings{})
		var tickets []*breaker.Ticket
		for range 100 {
			tickets = append(tickets, allow(t, b, pods))
		}
		advance(2 * time.Second)
		for _, ticket := range tickets {
			ticket.Done(breaker.Of(breaker.Paused))
		}
		wantState(t, b, breaker.Closed)
	})
}
