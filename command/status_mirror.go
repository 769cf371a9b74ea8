// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"

	"github.com/admission-dispatcher/dispatcher/internal/mirrorstatus"
	"github.com/admission-dispatcher/dispatcher/internal/status"
)

// printMirror prints how the mirror of the registry is, if there is one, and which objects
// it does not take.
func printMirror(w io.Writer, s *status.Status) {
	m := s.Mirror
	if m == nil {
		return
	}
	section(w, "REGISTRY\tSERVED SINCE\tOBJECTS\tREFUSED\tNEXT\tAPI HEARD")
	served, heard, next := "", "never", ""
	if !m.Since.IsZero() {
		served = since(s, m.Since)
	}
	if !m.Heard.IsZero() {
		heard = since(s, m.Heard)
	}
	if m.Next != nil {
		next = mirrorstatus.Short(m.Next.Generation) + " (" + m.BehindBecause() + ")"
	}
	line(w, mirrorstatus.Short(m.Generation), served, m.Accepted(), m.RefusedCount, next, heard)
	printRefused(w, m)
	if len(m.Quarantined) == 0 {
		return
	}
	section(w, "QUARANTINED\tSINCE\tREASON")
	for _, q := range m.Quarantined {
		line(w, mirrorstatus.Short(q.Generation), since(s, q.Since), q.Reason)
	}
}

func printRefused(w io.Writer, m *mirrorstatus.Mirror) {
	if len(m.Refused) == 0 {
		return
	}
	section(w, "REFUSED OBJECT\tREASON\tSERVED\tPROBLEM")
	shown := m.Refused[:min(len(m.Refused), shownDecisions)]
	for i := range shown {
		r, version, problem := &shown[i], "nothing", ""
		if r.Kept {
			version = "its last version"
		}
		if len(r.Problems) > 0 {
			problem = r.Problems[0].String()
		}
		if more := len(r.Problems) - 1; more > 0 {
			problem += fmt.Sprintf(" (and %d more)", more)
		}
		line(w, r.Object, r.Reason, version, problem)
	}
	if more := m.RefusedCount - len(shown); more > 0 {
		line(w, fmt.Sprintf("and %d more", more), "", "", "")
	}
}
