// SPDX-License-Identifier: Apache-2.0

package history

import "slices"

// explained finds the one Snapshot of the call's time that explains its answer.
func (m *model) explained(c *Call) []Finding {
	if rule := c.Annotations[bypassAnnotation]; rule != "" {
		return []Finding{c.finding(Bypass, "not exempt, and let pass by %q", rule)}
	}
	candidates := m.snapshots[c.UID]
	if len(candidates) == 0 {
		return []Finding{c.finding(OneSnapshot, "Snapshot %q was not in force", c.Annotations[snapshotAnnotation])}
	}
	var best []Finding
	for i, s := range candidates {
		found := m.hold(c, s)
		if len(found) == 0 {
			return nil
		}
		if i == 0 || len(found) < len(best) {
			best = found
		}
	}
	if reason := m.elsewhere(c); reason != "" {
		return append([]Finding{c.finding(OneSnapshot, "%s", reason)}, best...)
	}
	return best
}

// candidates are the Snapshots that may explain c: those of its time, and of
// these the one that it names.
func (w *World) candidates(c *Call) []*Snapshot {
	var some []*Snapshot
	hash := c.Annotations[snapshotAnnotation]
	for i := range w.Snapshots {
		s := &w.Snapshots[i]
		if s.touches(c) && (hash == "" || hash == s.Hash) {
			some = append(some, s)
		}
	}
	return some
}

// elsewhere tells whether what no Snapshot of the time explains comes from
// another time, or from several Snapshots at once; empty if neither.
func (m *model) elsewhere(c *Call) string {
	if hash := m.stale(c); hash != "" {
		return "explained only by Snapshot " + hash + ", which was not in force"
	}
	var touched []string
	for _, a := range m.attempts[c.UID] {
		touched = append(touched, a.Webhook)
	}
	said := c.testimony()
	touched = append(touched, said.named()...)
	if m.mixed(c, touched) {
		return "no Snapshot alone has all of the webhooks that took part"
	}
	return ""
}

// stale returns the Snapshot of another time that explains an answer which names
// none; empty if there is none.
func (m *model) stale(c *Call) string {
	if c.Annotations[snapshotAnnotation] != "" {
		return ""
	}
	for i := range m.world.Snapshots {
		s := &m.world.Snapshots[i]
		if !s.touches(c) && len(m.hold(c, s)) == 0 {
			return s.Hash
		}
	}
	return ""
}

// mixed reports whether each of the webhooks is of some Snapshot, but no
// Snapshot has all of them.
func (m *model) mixed(c *Call, webhooks []string) bool {
	known := map[string]bool{}
	for i := range m.world.Snapshots {
		var have []string
		for _, w := range m.world.Snapshots[i].wanted(c) {
			have = append(have, w.Name)
			known[w.Name] = true
		}
		if !slices.ContainsFunc(webhooks, func(name string) bool { return !slices.Contains(have, name) }) {
			return false
		}
	}
	return !slices.ContainsFunc(webhooks, func(name string) bool { return !known[name] })
}
