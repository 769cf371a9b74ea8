// SPDX-License-Identifier: Apache-2.0

package history

// attempt checks one attempt against the call that it was made for.
func (m *model) attempt(a *Attempt) []Finding {
	c, ok := m.calls[a.UID]
	if !ok {
		return []Finding{{Rule: ForeignBody, UID: a.UID, Text: a.Webhook + " was asked about a uid that nobody sent"}}
	}
	var found []Finding
	if c.Exempt {
		found = append(found, c.finding(Bypass, "exempt, and %s was asked", a.Webhook))
	}
	if a.Cluster != c.Cluster {
		found = append(found, c.finding(ForeignCluster, "%s was told %q, the caller is %q", a.Webhook, a.Cluster, c.Cluster))
	}
	if a.BodyHash != c.BodyHash && !m.mayDiffer(a, c) {
		found = append(found, c.finding(ForeignBody, "%s saw the body %q, sent was %q", a.Webhook, a.BodyHash, c.BodyHash))
	}
	w := m.webhook(a.Webhook, c)
	if w == nil { // the call's own check says so
		return found
	}
	limits := m.world.Limits
	if after := a.Arrived - c.Done; c.Err == "" && w.Mode != Shadow && after > limits.Grace+limits.Slack+c.Stall {
		found = append(found, c.finding(AfterAnswer, "%s was asked %v after the answer", a.Webhook, after))
	}
	return append(found, m.again(a, w, c)...)
}

// again checks an attempt that is not the first of its webhook, or that should
// not have been made at all.
func (m *model) again(a *Attempt, w *Webhook, c *Call) []Finding {
	first := m.attempts[a.UID].of(a.Webhook)[0]
	switch {
	case w.uncallable(c):
		return []Finding{c.finding(AskedTwice, "%s was asked on a dry run that it does not support", a.Webhook)}
	case first == a:
		return nil
	case w.once(c):
		return []Finding{c.finding(AskedTwice, "%s has side effects, and was asked again", a.Webhook)}
	case first.BodyHash != a.BodyHash:
		return []Finding{c.finding(ForeignBody, "%s saw two bodies: %q, %q", a.Webhook, first.BodyHash, a.BodyHash)}
	}
	return nil
}

// mayDiffer reports whether a webhook before this one may have changed the body.
func (m *model) mayDiffer(a *Attempt, c *Call) bool {
	for _, s := range m.snapshots[c.UID] {
		for _, w := range s.wanted(c) {
			if w.Phase == Validating || w.Name == a.Webhook {
				break
			}
			if ops, _ := operations(w.Truth(c.UID).Patch); len(ops) > 0 && w.Mode != Shadow {
				return true
			}
		}
	}
	return false
}

// webhook returns the webhook as of a Snapshot of the call's time, or nil.
func (m *model) webhook(name string, c *Call) *Webhook {
	for _, s := range m.snapshots[c.UID] {
		for _, w := range s.wanted(c) {
			if w.Name == name {
				return w
			}
		}
	}
	return nil
}
