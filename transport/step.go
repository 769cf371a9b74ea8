// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
)

// event is something that happened to a call, with what the decision has to know
// of the world.
type event struct {
	what    happening
	end     result // of ended
	refused step   // of unavailable

	now       time.Time
	unneeded  bool          // nobody needs the answer any more
	others    bool          // there is an Endpoint that this call has not called
	reachable bool          // an Endpoint's own circuit is not open
	hedge     time.Duration // how long the first attempt has before it is hedged; 0: it is not
	jitter    float64       // in [0, 1)
}

// happening is what an event is. The set is closed.
type happening uint8

const (
	begun happening = iota
	ended           // an attempt
	rang            // the alarm
	woke            // from a sleep
	// unavailable: the step that was decided on cannot be taken: the budget does not
	// have it, no circuit lets it through, or too many calls wait for one.
	unavailable
)

// step is what to do next on the goroutine of the event.
type step struct {
	do    action
	end   result        // to answer; otherwise what the step is a consequence of
	pause time.Duration // to sleep

	choice       // the attempt, or its kind where it follows a sleep
	price  price // of the step
	// fallback: the attempt takes the place of one in the first wording.
	fallback bool

	// What there is to tell beside.
	lesson    Lesson // 0: none
	doubted   error  // why the first wording is given up
	disagreed bool   // two verdicts of the call differ
	denied    bool   // the budget did not have an extra attempt
}

// choice is an attempt that is about to be made: how, and, once it has been granted,
// at which Endpoint, with the leave of its breaker.
type choice struct {
	number   int // of the attempt: 0, 1 ...
	kind     Kind
	plain    bool // in the plain wording
	fresh    bool // over a new connection
	endpoint *Endpoint
	ticket   breaker.Ticket // the zero one where there is no breaker
}

// action is what a step does. The set is closed.
type action uint8

const (
	wait    action = iota // nothing here: another attempt, or the alarm, brings the next event
	answer                // tell the receiver
	attempt               // make an attempt
	sleep                 // pause, and look again
)

// price is what a step takes from the budget.
type price uint8

const (
	free price = iota
	retryPrice
	hedgePrice
)

// errNobody stands for why no Endpoint could be called.
var errNobody = errors.New("no Endpoint may be called")
