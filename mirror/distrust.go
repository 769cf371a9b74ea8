// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"slices"
	"strings"
)

// isDistrusted reports whether something mirrored was new in a generation that is
// quarantined.
func (m *Mirror) isDistrusted(hash string) bool {
	return slices.ContainsFunc(m.quarantined, func(q Quarantined) bool { return slices.Contains(q.Mirrored, hash) })
}

// newlyMirrored returns the hashes of what of workload clusters a generation has and the
// one before has not.
func newlyMirrored(g, before *generation) (hashes []string) {
	if g == nil {
		return nil
	}
	for _, o := range sorted(g.objects) {
		if !strings.HasPrefix(o.key, workloadPrefix) {
			continue
		}
		if before == nil || before.objects[o.key] == nil || before.objects[o.key].hash != o.hash {
			hashes = append(hashes, o.hash)
		}
	}
	return hashes
}
