// SPDX-License-Identifier: Apache-2.0

package history

import (
	"strings"
	"time"
)

// ask makes the attempts of one call and notes what came of them.
func (s *simulator) ask(c *Call, o *outcome, now, end time.Duration) {
	w := o.webhook
	f := s.fault(c, w)
	truth := w.Truth(c.UID)
	latency := time.Duration(1+s.rand.IntN(60)) * ms
	if s.rand.IntN(4) == 0 {
		latency += 60 * ms
	}
	o.at = min(now+latency, end)
	if s.bug == breakerCountsDenials && truth.denies() && s.rare() {
		s.fails(c, o, BreakerOpen)
		return
	}
	if s.bug == inventsFailure && f == nil && s.rare() {
		s.fails(c, o, Unreachable)
		return
	}
	if f != nil {
		cause := f.Causes[s.rand.IntN(len(f.Causes))]
		s.broken(c, o, cause, now, end)
		return
	}
	s.attempt(c, w, now, o.at, truth.Cause == "")
	s.hedge(c, w, now, o.at)
	if s.bug == lateAnswer && s.rare() {
		o.at += w.Timeout + c.Timeout
	}
	s.decide(c, o, truth)
}

// decide turns an answer that was heard into an outcome.
func (s *simulator) decide(c *Call, o *outcome, truth Answer) {
	if s.bug == losersAnswer && s.rare() { // of an earlier call on the connection
		truth = o.webhook.Truth(c.UID)
		truth.Message = strings.ReplaceAll(truth.Message, c.UID, "uid-of-an-earlier-call")
	}
	switch {
	case s.bug == deniesForNothing && truth.Allowed && s.rare():
		o.kind, o.code, o.text = saidDenied, 403, "nobody said this"
	case truth.Refusal:
		o.kind, o.cause, o.code = saidRefused, truth.Cause, 500
	case truth.Cause != "":
		s.fails(c, o, truth.Cause)
	case truth.Allowed:
		o.allowed, o.patch = true, truth.Patch
	default:
		o.kind, o.code, o.text = saidDenied, truth.Code, truth.Message
	}
}

// broken is a call under a fault.
func (s *simulator) broken(c *Call, o *outcome, cause Cause, now, end time.Duration) {
	switch cause {
	case Timeout: // the answer comes when nobody waits for it
		s.attempt(c, o.webhook, now, end+500*ms, true)
		o.at = end
	case BadAnswer: // it says allow, for another uid
		s.attempt(c, o.webhook, now, o.at, false)
		if s.bug == uidUnchecked {
			o.allowed = true
			return
		}
	case Unreachable, BreakerOpen:
		o.at = now + ms
	}
	if cause == Unreachable && s.bug == retriesEffects && o.webhook.once(c) {
		s.attempt(c, o.webhook, now, 0, false)
		s.attempt(c, o.webhook, now+ms, 0, false)
	}
	s.fails(c, o, cause)
}

// fault returns the fault that this call of w meets, or nil.
func (s *simulator) fault(c *Call, w *Webhook) *Fault {
	for i := range s.world.Faults {
		f := &s.world.Faults[i]
		begun := f.From <= c.Sent && c.Sent <= f.Until
		if !begun || !f.hits(w, c) {
			continue
		}
		s.met[f]++
		early := f.After > 0 && s.met[f] <= f.After+1 && s.bug != opensAtOnce
		if !early && (!f.MayStillAnswer || s.rand.IntN(3) == 0 || s.bug == noRecovery) {
			return f
		}
	}
	return nil
}

// hedge makes one more attempt where it may, and the budget has room.
func (s *simulator) hedge(c *Call, w *Webhook, now, answered time.Duration) {
	if w.once(c) || (s.rand.IntN(20) != 0 && s.bug != hedgesTooMuch) {
		return
	}
	made := s.extra[w.Name]
	if n := len(made); s.bug != hedgesTooMuch && n >= 10 && made[n-10] > now-11*time.Second {
		return
	}
	s.extra[w.Name] = append(made, now)
	at := now + (answered-now)/2
	if s.bug == asksAfterAnswer {
		at = answered + time.Second
	}
	s.attempt(c, w, at, at+5*ms, true)
}

// attempt writes down what the webhook saw.
func (s *simulator) attempt(c *Call, w *Webhook, arrived, answered time.Duration, intact bool) {
	a := Attempt{
		UID:      c.UID,
		Webhook:  w.Name,
		Cluster:  c.Cluster,
		BodyHash: c.BodyHash,
		Arrived:  arrived,
		Answered: answered,
		Intact:   intact,
	}
	if s.bug == bodyReused && s.rare() {
		a.BodyHash = "body of somebody else"
	}
	if s.bug == wrongHeader && s.rare() {
		a.Cluster = "nowhere"
	}
	s.attempts = append(s.attempts, a)
}
