// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"time"
)

// Fault is something broken for a while, and what it excuses.
type Fault struct {
	Webhook     string   // empty: every webhook
	Cluster     string   // empty: every cluster
	Resources   []string // nil: all
	From, Until time.Duration
	// Causes are the CallErrors that it excuses. A breaker that stays open after
	// the repair is a Fault of its own, with BreakerOpen and MayStillAnswer.
	Causes []Cause
	// MayStillAnswer: some calls come through; otherwise a call that was made
	// wholly within the Fault has no answer.
	MayStillAnswer bool
	// Cuts: an answer that the webhook has given may not arrive.
	Cuts bool
	// Share is the largest share of the affected calls that may fail; 0: any.
	Share float64
	// After is how many other calls of the webhook must have been made within the
	// Fault before it excuses anything: a circuit does not open by itself.
	After int
}

// hits reports whether f may have touched the call of w for c.
func (f *Fault) hits(w *Webhook, c *Call) bool {
	return (f.Webhook == "" || f.Webhook == w.Name) && holds(f.Resources, c.Resource) &&
		(f.Cluster == "" || f.Cluster == c.Cluster) &&
		f.From <= c.Done && c.Sent <= f.Until
}

// spans reports whether f was in force during all of c.
func (f *Fault) spans(c *Call) bool { return f.From <= c.Sent && c.Done <= f.Until }

// part is what a webhook may have come to in one call.
type part struct {
	webhook *Webhook
	truth   Answer
	excuses []Cause // for a failure, that are not of its own making
	causes  []Cause // all that its failure may have
	must    bool    // fail: the truth cannot have been heard
	refused bool    // nobody may ignore that, but for an excuse
	asked   bool    // it answered with the truth, early enough to be used
	heard   bool    // the truth was surely heard in time: it must count
	since   time.Duration
}

// part computes what w, in the chain, may have come to in c.
func (m *model) part(w *Webhook, c *Call, chain []*Webhook) part {
	p := part{webhook: w, truth: w.Truth(c.UID), asked: w.Inside}
	p.excuses, p.must = m.excuses(w, c)
	if c.Stall > w.Timeout/4 { // nor did those run on whom it waited
		p.excuses = append(p.excuses, Timeout)
	}
	if m.starved(w, c, chain) {
		p.excuses = append(p.excuses, NoTimeLeft)
	}
	switch {
	case w.uncallable(c):
		p.causes, p.excuses = []Cause{DryRun}, nil
		p.must, p.refused = true, true
		return p
	case p.truth.Cause != "":
		p.causes = []Cause{p.truth.Cause}
		p.must, p.refused = true, p.truth.Refusal
	}
	p.causes = append(p.causes, p.excuses...)
	m.hear(&p, c)
	return p
}

// excuses returns the causes that the faults in force excuse, and whether they
// leave no way to hear the truth.
func (m *model) excuses(w *Webhook, c *Call) (causes []Cause, must bool) {
	for i := range m.world.Faults {
		f := &m.world.Faults[i]
		if !f.hits(w, c) || f.After > 0 && before(m.hit[f], c.Done)-1 < f.After {
			continue
		}
		causes = append(causes, f.Causes...)
		must = must || (!f.MayStillAnswer && f.spans(c))
	}
	if slices.ContainsFunc(m.world.Sheds, func(s Span) bool { return s.covers(c) }) {
		causes = append(causes, Shed)
	}
	return causes, must
}

// count notes the calls that meet a Fault with an After.
func (m *model) count(calls []Call) {
	for i := range m.world.Faults {
		f := &m.world.Faults[i]
		if f.After == 0 {
			continue
		}
		for j := range calls {
			if c := &calls[j]; !c.Exempt && m.aims(f, c) {
				m.hit[f] = append(m.hit[f], c.Sent)
			}
		}
		slices.Sort(m.hit[f])
	}
}

// starved reports whether a mutating webhook before w may have used up the time.
func (m *model) starved(w *Webhook, c *Call, chain []*Webhook) bool {
	if w.Phase != Mutating {
		return false
	}
	for _, before := range chain {
		if before == w {
			return false
		}
		if causes, _ := m.excuses(before, c); slices.Contains(causes, Timeout) {
			return true
		}
	}
	return false
}

// hear notes what the webhook's side of the story says.
func (m *model) hear(p *part, c *Call) {
	attempts := m.attempts[c.UID].of(p.webhook.Name)
	if len(attempts) == 0 {
		return
	}
	var (
		timeout  = p.webhook.Timeout
		slack    = m.world.Limits.Slack + c.Stall
		latest   = min(attempts[0].Arrived+timeout, c.Sent+m.budget(c), c.Done) + slack
		surely   = latest - 2*slack
		hearable = !p.must && !m.cut(p.webhook, c)
	)
	if p.webhook.Phase == Validating { // its time began with the admission's
		surely = min(surely, c.Sent+timeout-slack)
	}
	for _, a := range attempts {
		if a.Intact && a.Answered != 0 && a.Answered <= latest {
			p.asked = true
			if hearable && a.Answered <= surely && (!p.heard || a.Answered < p.since) {
				p.heard, p.since = true, a.Answered
			}
		}
	}
}

// cut reports whether answers of w may have been lost on their way.
func (m *model) cut(w *Webhook, c *Call) bool {
	return slices.ContainsFunc(m.world.Faults, func(f Fault) bool { return f.Cuts && f.hits(w, c) })
}
