// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
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
func mirrorNotices(m *mirrorstatus.Mirror, now time.Time, l *notices) {
	if m.Error != "" {
		l.add(Notice{Severity: critical, Text: "The mirror of the registry does not work", Error: m.Error})
	}
	stays := fmt.Sprintf("Generation %s is served until then.", mirrorstatus.Short(m.Generation))
	switch next := m.Next; m.BehindBecause() {
	case mirrorstatus.CrashedWith:
		l.add(Notice{
			Severity: critical, Text: "The mirror of the registry crashes with what the API has", Affects: stays,
			Remedy: "Take back the last change of an object.", Runbook: runbook("DispatcherGenerationQuarantined"),
		})
	case mirrorstatus.Quarantine:
		l.add(Notice{
			Severity: critical, Text: fmt.Sprintf("Generation %s of the registry is quarantined", mirrorstatus.Short(next.Generation)), Affects: stays,
			Error: quarantineReason(m), Remedy: "Take back the last change of an object.", Runbook: runbook("DispatcherGenerationQuarantined"),
		})
	case mirrorstatus.HeldBack:
		l.add(Notice{
			Severity: critical, Text: fmt.Sprintf("Generation %s of the registry is held back: it has lost %s", mirrorstatus.Short(next.Generation), strings.Join(next.Lost, ", ")), Affects: stays,
			Remedy: "If that is meant: " + next.Confirm(), Runbook: runbook("DispatcherGenerationHeldBack"),
		})
	}
	if n := m.RefusedCount; n > 0 {
		l.add(Notice{
			Severity: warning, Text: fmt.Sprintf("%s of the registry %s not served as in the API: %s", Count(n, "object"), is(n), refusedNames(m)),
			Runbook: runbook("DispatcherObjectsRefused"),
		})
	}
	if m.Error == "" && now.Sub(m.Heard) > silence {
		l.add(Notice{
			Severity: warning, Text: "The API of the registry " + lastHeard(m.Heard, now), Affects: "What is served stays.",
			Error: unheard(m), Runbook: runbook("DispatcherRegistryUnheard"),
		})
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

// unheard returns the error of the first resource that has one.
func unheard(m *mirrorstatus.Mirror) string {
	for _, r := range m.Resources {
		if r.Error != "" {
			return r.Resource + ": " + r.Error
		}
	}
	return ""
}
