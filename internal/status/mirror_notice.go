// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/mirrorstatus"
)

// silence is how long an API may not be heard of before somebody should look. An API
// server sends a bookmark every minute where nothing changes.
const silence = 10 * time.Minute

// shownRefused is how many refused objects a notice names.
const shownRefused = 3

// mirrorNotices says what is wrong with the mirror of the API: what it holds back, what it
// does not take, and what it cannot do.
func mirrorNotices(m *mirrorstatus.Mirror, now time.Time, severe, say sayer) {
	if m.Error != "" {
		severe("The mirror of the registry: %s", m.Error)
	}
	switch next := m.Next; m.BehindBecause() {
	case mirrorstatus.CrashedWith:
		severe("The mirror of the registry crashes with what the API has: generation %s stays until objects change", mirrorstatus.Short(m.Generation))
	case mirrorstatus.Quarantine:
		severe("Generation %s of the registry is quarantined (%s): %s is served until objects change", mirrorstatus.Short(next.Generation), quarantineReason(m), mirrorstatus.Short(m.Generation))
	case mirrorstatus.HeldBack:
		severe("Generation %s of the registry is held back: it has lost %s. If that is meant: %s", mirrorstatus.Short(next.Generation), strings.Join(next.Lost, ", "), next.Confirm())
	}
	if n := m.RefusedCount; n > 0 {
		say("%s of the registry %s not served as in the API: %s", Count(n, "object"), is(n), refusedNames(m))
	}
	if m.Error == "" && now.Sub(m.Heard) > silence {
		say("The API of the registry %s: what is served stays%s", lastHeard(m.Heard, now), unheardResources(m))
	}
}

func is(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// quarantineReason returns why the next generation is not served.
func quarantineReason(m *mirrorstatus.Mirror) string {
	for _, q := range m.Quarantined {
		if q.Generation == m.Next.Generation {
			return q.Reason
		}
	}
	return "since an earlier crash"
}

func refusedNames(m *mirrorstatus.Mirror) string {
	var names []string
	for i := range m.Refused[:min(len(m.Refused), shownRefused)] {
		names = append(names, m.Refused[i].Object+" ("+m.Refused[i].Reason+")")
	}
	if more := m.RefusedCount - len(names); more > 0 {
		names = append(names, Count(more, "other"))
	}
	return strings.Join(names, ", ")
}

func lastHeard(heard, now time.Time) string {
	if heard.IsZero() {
		return "has not answered yet"
	}
	return "was last heard " + now.Sub(heard).Round(time.Second).String() + " ago"
}

// unheardResources says which resources have errors.
func unheardResources(m *mirrorstatus.Mirror) string {
	for _, r := range m.Resources {
		if r.Error != "" {
			return " (" + r.Resource + ": " + r.Error + ")"
		}
	}
	return ""
}
