// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"time"

	"github.com/admission-dispatcher/dispatcher/hook"
)

// Kind says why an attempt is made. The set is closed.
type Kind uint8

// The kinds.
const (
	First Kind = iota
	Retry
	Hedge

	// Kinds is how many there are.
	Kinds = iota
)

var kindNames = [Kinds]string{First: "first", Retry: "retry", Hedge: "hedge"}

// String returns the kind in the spelling of metrics and spans.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Attempt is one HTTP try that has ended.
type Attempt struct {
	Owner    hook.ID // of the Call
	Endpoint *Endpoint
	Kind     Kind
	Start    time.Time
	Elapsed  time.Duration
	Err      error // as Call would return it
	Lost     bool  // the call was decided without it
}

// Observer is told what calls do, on the goroutines that do it: it must be
// quick, and must not block.
type Observer interface {
	// Attempted is told of every attempt. ctx carries the attempt's span.
	Attempted(ctx context.Context, a Attempt)
	// Refused is told of an extra attempt that was not made for want of budget.
	Refused(ctx context.Context, owner hook.ID)
	// Disagreed is told of a call of which two attempts gave different verdicts.
	Disagreed(ctx context.Context, owner hook.ID)
	// Misread is told of a call whose webhook did not read what it had said that it
	// reads.
	Misread(ctx context.Context, owner hook.ID)
	// Switched is told when the form of a Target's reviews changes.
	Switched(ctx context.Context, s Switch)
}

// Silent is the Observer where nobody observes.
type Silent struct{}

// Attempted implements Observer.
func (Silent) Attempted(context.Context, Attempt) {}

// Refused implements Observer.
func (Silent) Refused(context.Context, hook.ID) {}

// Disagreed implements Observer.
func (Silent) Disagreed(context.Context, hook.ID) {}

// Misread implements Observer.
func (Silent) Misread(context.Context, hook.ID) {}

// Switched implements Observer.
func (Silent) Switched(context.Context, Switch) {}
