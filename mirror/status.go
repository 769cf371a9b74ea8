// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"bytes"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/mirrorstatus"
)

type (
	// Status is what there is to tell of a mirror, as its file has it.
	Status = mirrorstatus.Mirror
	// Next is a generation that is not served yet.
	Next = mirrorstatus.NextGeneration
	// Refused is an object that is not served as it stands in the API.
	Refused = mirrorstatus.RefusedObject
	// Quarantined is a generation with which the dispatcher crashed.
	Quarantined = mirrorstatus.QuarantinedGeneration
	// ResourceStatus is whether a resource of the API is known.
	ResourceStatus = mirrorstatus.MirroredResource
	// WorkloadStatus is a cluster that may have configurations mirrored.
	WorkloadStatus = mirrorstatus.MirroredWorkload
)

// The reasons for which an object is refused.
const (
	ReasonInvalid    = mirrorstatus.Invalid
	ReasonConflict   = mirrorstatus.Conflict
	ReasonUnresolved = mirrorstatus.Unresolved
	ReasonWaiting    = mirrorstatus.Waiting
	ReasonBounds     = mirrorstatus.Bounds
)

// status returns the status as of now. It is for the goroutine of Run.
func (m *Mirror) status() Status {
	s := Status{
		Since: m.since, Behind: m.behind, Next: m.next(),
		Refused: m.refused, RefusedCount: len(m.refused), RefusedByReason: map[string]int{},
		Quarantined: m.quarantined, Crashed: m.crashed, Error: m.broken,
	}
	for i := range m.refused {
		s.RefusedByReason[m.refused[i].Reason]++
	}
	if m.serving != nil {
		s.Generation, s.Objects = m.serving.hash, m.serving.summary.Kinds
	}
	for i, st := range m.stores {
		r := st.status()
		if i == 0 || r.Heard.Before(s.Heard) {
			s.Heard = r.Heard
		}
		s.Resources = append(s.Resources, r)
	}
	if m.replicas != nil {
		s.Replicas, s.Resources = m.replicas.status(s.Resources)
	}
	s.Workloads = m.workloadStatus()
	return s
}

func (s *store) status() ResourceStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := ResourceStatus{Resource: s.Resource, Synced: s.synced, Heard: s.heard}
	if s.err != nil {
		r.Error = cut(s.err.Error())
	}
	return r
}

// stamp is the time as it is written down: to the second, so that what is heard often
// does not write a file as often.
func stamp() time.Time { return time.Now().UTC().Truncate(time.Second) }

// maxError bounds what is told of an error, in bytes.
const maxError = 300

func cut(text string) string { return text[:min(len(text), maxError)] }

// tell writes the status, if it has changed.
func (m *Mirror) tell() {
	text, err := m.status().Write()
	if err != nil || bytes.Equal(text, m.told) {
		return
	}
	if m.disk.replace(mirrorstatus.File, text) == nil {
		m.told = text
	}
}
