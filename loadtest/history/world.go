// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"time"
)

// World is what was configured, and broken, while the calls were made.
type World struct {
	Snapshots []Snapshot
	Faults    []Fault
	// Sheds are the spans in which load may be shed, Losses those in which a call
	// may get no answer at all.
	Sheds  []Span
	Losses []Span
	// Pauses are the spans in which the dispatcher stood still: who called then may be
	// answered as much later.
	Pauses []Span
	Limits Limits
}

// Span is a time in which something holds for a cluster.
type Span struct {
	Cluster     string // empty: every cluster
	From, Until time.Duration
}

// Snapshot is one compiled configuration.
type Snapshot struct {
	Hash string // as in the audit annotation
	// From and Until are the span in which it may explain an answer. Around a
	// change the old and the new one overlap.
	From, Until time.Duration
	Webhooks    []Webhook
}

// Phase is validating or mutating.
type Phase string

// The phases.
const (
	Validating Phase = "validating"
	Mutating   Phase = "mutating"
)

// Policy is what happens when a webhook gives no usable answer.
type Policy string

// The failure policies.
const (
	Fail   Policy = "Fail"
	Ignore Policy = "Ignore"
)

// Mode says how much a webhook's answer counts.
type Mode string

// The modes. Warn turns denials into warnings, a Shadow webhook has no part in
// the answer.
const (
	Enforce Mode = ""
	Warn    Mode = "Warn"
	Shadow  Mode = "Shadow"
)

// SideEffects says when a webhook may be asked twice, and on a dry run at all.
type SideEffects string

// The side effects.
const (
	NoSideEffects SideEffects = "None"
	NoneOnDryRun  SideEffects = "NoneOnDryRun"
	SomeEffects   SideEffects = "Some"
)

// Webhook is one webhook of a Snapshot.
type Webhook struct {
	Name          string // unique in its Snapshot
	Version       string // of what is served: the rest of its path; empty: it has none
	Phase         Phase
	Order         int      // in configuration order, ascending
	Clusters      []string // nil: all
	Resources     []string // nil: all
	FailurePolicy Policy
	SideEffects   SideEffects
	Timeout       time.Duration
	Mode          Mode
	// Inside: it decides in the dispatcher, where nobody else sees that it was asked.
	Inside bool
	// Truth is what the webhook's script implies for a uid. It is pure.
	Truth func(uid string) Answer
}

// Answer is what a webhook's script implies for one admission, as the dispatcher
// must understand it.
type Answer struct {
	Allowed bool
	Code    int32  // of a denial, as it must reach the caller
	Message string // of a denial, as it must reach the caller
	Patch   []byte // JSON array of operations; nil: none
	// Cause is set where the script never gives a usable answer. Refusal: it
	// denies whatever the failure policy.
	Cause   Cause
	Refusal bool
}

// denies reports whether the answer is a plain no.
func (a Answer) denies() bool { return a.Cause == "" && !a.Allowed }

// Limits are the bounds of the contract.
type Limits struct {
	Slack       time.Duration // noise that bounds in time are given
	Late        time.Duration // noise that the deadline of an admission is given, beside a Call's LastStall
	Grace       time.Duration // for others after the first denial
	MaxTimeout  time.Duration // the configured maximum of the caller's timeout
	ExtraShare  float64       // extra attempts per first attempt ...
	ExtraWindow time.Duration // ... within this window ...
	ExtraBurst  int           // ... beyond this many
}

// DefaultLimits are the documented defaults.
func DefaultLimits() Limits {
	return Limits{
		Slack:       60 * time.Millisecond,
		Late:        60 * time.Millisecond,
		Grace:       100 * time.Millisecond,
		MaxTimeout:  30 * time.Second,
		ExtraShare:  0.05,
		ExtraWindow: 10 * time.Second,
		ExtraBurst:  10,
	}
}

// wants reports whether w is to be asked about c.
func (w *Webhook) wants(c *Call) bool {
	return w.Phase == c.Phase && holds(w.Clusters, c.Cluster) && holds(w.Resources, c.Resource)
}

// once reports whether w may be asked about c only once.
func (w *Webhook) once(c *Call) bool {
	return w.SideEffects == SomeEffects || (w.SideEffects == NoneOnDryRun && !c.DryRun)
}

// uncallable reports whether c is a dry run that w does not support.
func (w *Webhook) uncallable(c *Call) bool { return c.DryRun && w.SideEffects == SomeEffects }

// ignores reports whether a CallError of w does not block c.
func (w *Webhook) ignores(c *Call) bool { return w.FailurePolicy == Ignore || c.FailOpen }

// wanted returns the webhooks of s that are to be asked about c, in order.
func (s *Snapshot) wanted(c *Call) []*Webhook {
	var wanted []*Webhook
	for i := range s.Webhooks {
		if s.Webhooks[i].wants(c) {
			wanted = append(wanted, &s.Webhooks[i])
		}
	}
	slices.SortStableFunc(wanted, func(x, y *Webhook) int { return x.Order - y.Order })
	return wanted
}

// touches reports whether the span of s has a moment of c in it.
func (s *Snapshot) touches(c *Call) bool { return s.From <= c.Done && c.Sent <= s.Until }

func (s Span) covers(c *Call) bool {
	return (s.Cluster == "" || s.Cluster == c.Cluster) && s.From <= c.Done && c.Sent <= s.Until
}

// holds reports whether one is in all; nil holds everything.
func holds(all []string, one string) bool { return all == nil || slices.Contains(all, one) }
