// SPDX-License-Identifier: Apache-2.0

package history

import "time"

// Check returns every rule that the record breaks, those of the Calls in their
// order first; none if all is as it must be. The uids of calls are unique.
func Check(w World, calls []Call, tries []Attempt) []Finding {
	m := newModel(w, calls, tries)
	var found []Finding
	for i := range calls {
		found = append(found, m.call(&calls[i])...)
	}
	for i := range tries {
		found = append(found, m.attempt(&tries[i])...)
	}
	found = append(found, m.extra(tries)...)
	return append(found, m.shares(calls)...)
}

// model is the World with the record at hand.
type model struct {
	world    World
	calls    map[string]*Call
	attempts map[string]attempts
	// snapshots are those that may explain the call of a uid.
	snapshots map[string][]*Snapshot
	// hit are the times at which calls were sent that may have met a Fault with an
	// After, ascending.
	hit map[*Fault][]time.Duration
}

func newModel(w World, calls []Call, tries []Attempt) *model {
	m := &model{
		world:     w,
		calls:     make(map[string]*Call, len(calls)),
		attempts:  byUID(tries),
		snapshots: make(map[string][]*Snapshot, len(calls)),
		hit:       map[*Fault][]time.Duration{},
	}
	for i := range calls {
		c := &calls[i]
		m.calls[c.UID], m.snapshots[c.UID] = c, w.candidates(c)
	}
	m.count(calls)
	return m
}

// call checks one call: what needs no configuration to be seen, then the answer
// against the Snapshots of its time.
func (m *model) call(c *Call) []Finding {
	switch {
	case c.GaveUp || c.Err != "" || c.Status != statusOK:
		return m.lost(c)
	case c.UIDAnswered != c.UID:
		return []Finding{c.finding(ForeignUID, "the answer is for %q", c.UIDAnswered)}
	case c.Exempt:
		return m.exempt(c)
	}
	return append(m.late(c), m.explained(c)...)
}

const statusOK = 200

// lost is a call without an answer. No loss explains a caller that waited in vain.
func (m *model) lost(c *Call) []Finding {
	if c.GaveUp {
		return []Finding{c.finding(LateAnswer, "the caller gave up after %v, the deadline was %v", c.Done-c.Sent, m.budget(c))}
	}
	for _, s := range m.world.Losses {
		if s.covers(c) {
			return nil
		}
	}
	return []Finding{c.finding(LostCall, "status %d: %s", c.Status, c.Err)}
}

// exempt is a call that nobody is asked about. That its webhooks are left alone
// is checked with the attempts.
func (m *model) exempt(c *Call) []Finding {
	found := m.late(c)
	if !c.Allowed {
		found = append(found, c.finding(Bypass, "exempt, and denied: %s", c.Message))
	}
	if c.Annotations[bypassAnnotation] == "" {
		found = append(found, c.finding(Bypass, "exempt, and no annotation says so"))
	}
	if len(c.Patch) > 0 {
		found = append(found, c.finding(Bypass, "exempt, and patched"))
	}
	return found
}

// late checks the deadline, which holds whatever the webhooks do.
func (m *model) late(c *Call) []Finding {
	noise := m.world.Limits.Late + c.LastStall
	for _, s := range m.world.Pauses {
		if s.From < c.Done && c.Sent < s.Until {
			noise += s.Until - s.From
		}
	}
	if took := c.Done - c.Sent; took > m.budget(c)+noise {
		return []Finding{c.finding(LateAnswer, "answered after %v, the deadline was %v", took, m.budget(c))}
	}
	return nil
}

// budget is the time T from the arrival of c to its deadline.
func (m *model) budget(c *Call) time.Duration {
	t := c.Timeout
	if limit := m.world.Limits.MaxTimeout; limit > 0 {
		t = min(t, limit)
	}
	return t - max(100*time.Millisecond, t/20)
}
