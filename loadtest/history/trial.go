// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"time"
)

// trial holds one call against one Snapshot.
type trial struct {
	m     *model
	c     *Call
	chain []*Webhook // that are to be asked, in order
	parts []part     // of those that have a part in the answer: not the Shadow ones
	said  testimony
	found []Finding
}

// hold returns what the Snapshot does not explain about the answer.
func (m *model) hold(c *Call, s *Snapshot) []Finding {
	t := &trial{m: m, c: c, chain: s.wanted(c), said: c.testimony()}
	for _, w := range t.chain {
		if w.Mode != Shadow {
			t.parts = append(t.parts, m.part(w, c, t.chain))
		}
	}
	t.naming()
	t.routing()
	t.announcing()
	t.timing()
	if c.Allowed {
		t.allowed()
	} else {
		t.denied()
	}
	t.patching()
	return t.found
}

func (t *trial) report(r Rule, format string, args ...any) {
	t.found = append(t.found, t.c.finding(r, format, args...))
}

// naming: nobody is named who has no part.
func (t *trial) naming() {
	for _, name := range t.said.named() {
		w := t.webhook(name)
		switch {
		case w == nil:
			t.report(Attribution, "%s is named, and does not want the call", name)
		case w.Mode == Shadow:
			t.report(ModeEnforced, "%s is named, and in Shadow mode", name)
		}
	}
}

// routing: nobody is asked who does not want the call, nor as another version.
func (t *trial) routing() {
	for _, a := range t.m.attempts[t.c.UID] {
		switch w := t.webhook(a.Webhook); {
		case w == nil:
			t.report(Misrouted, "%s was asked and does not want the call", a.Webhook)
		case w.Version != a.Version:
			t.report(Misrouted, "%s was asked as version %q, and is %q", a.Webhook, a.Version, w.Version)
		}
	}
}

// announcing: what did not deny and must not be silent stands in a warning and
// in an annotation.
func (t *trial) announcing() {
	for _, by := range announced {
		warned, listed := names(ofKind(t.said.rest, by.kind)), t.c.listed(by.key)
		if !sameNames(warned, listed) && !t.c.cut(by.key) {
			t.report(SilentFailOpen, "warnings name %q, the annotation %s names %q", warned, by.key, listed)
		}
	}
}

// timing: nobody waits longer than for the slowest webhook, nor after a denial
// for longer than the grace.
func (t *trial) timing() {
	var (
		slack  = t.m.world.Limits.Slack + t.c.Stall
		bound  time.Duration
		denial time.Duration
	)
	for _, p := range t.parts {
		if t.c.Phase == Mutating {
			bound += p.webhook.Timeout
		} else {
			bound = max(bound, p.webhook.Timeout)
		}
		if p.heard && p.truth.denies() && p.webhook.Mode == Enforce && (denial == 0 || p.since < denial) {
			denial = p.since
		}
	}
	if took := t.c.Done - t.c.Sent; len(t.parts) > 0 && took > bound+slack {
		t.report(LateAnswer, "answered after %v, the webhooks had %v", took, bound)
	}
	if over := t.c.Done - denial - t.m.world.Limits.Grace; denial > 0 && over > slack {
		t.report(LateAnswer, "answered %v after the grace", over)
	}
}

// webhook returns the webhook of the name that wants the call, or nil.
func (t *trial) webhook(name string) *Webhook {
	i := slices.IndexFunc(t.chain, func(w *Webhook) bool { return w.Name == name })
	if i < 0 {
		return nil
	}
	return t.chain[i]
}

// part returns the part of the webhook of the name, or nil.
func (t *trial) part(name string) *part {
	i := slices.IndexFunc(t.parts, func(p part) bool { return p.webhook.Name == name })
	if i < 0 {
		return nil
	}
	return &t.parts[i]
}
