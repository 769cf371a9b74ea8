// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"bytes"
	"encoding/json"
	"os"
	"time"
)

// StatusFile is the name of the status in the mirror's directory.
const StatusFile = "status.json"

// maxRefused bounds the refused objects in a Status.
const maxRefused = 200

// Status is what there is to tell of a mirror.
type Status struct {
	// Generation is the name of the one that is served; "": there is none.
	Generation string         `json:"generation"`
	Objects    map[string]int `json:"objects,omitempty"` // in it, by kind
	// Next waits for its time, or is held back.
	Next *Next `json:"next,omitempty"`
	// Refused are objects that are not served as they stand in the API, at most
	// maxRefused of RefusedCount.
	Refused      []Refused `json:"refused,omitempty"`
	RefusedCount int       `json:"refusedCount"`
	// Quarantined are generations that are not served any more.
	Quarantined []Quarantined `json:"quarantined,omitempty"`
	// Crashed says that the mirror ended while it judged what the API has now.
	Crashed   bool             `json:"crashed,omitempty"`
	Resources []ResourceStatus `json:"resources"`
	Error     string           `json:"error,omitempty"` // of the directory
}

// Next is a generation that is not served yet.
type Next struct {
	Generation string    `json:"generation"`
	At         time.Time `json:"at,omitzero"` // when it will be served
	// Lost is why it is held back: it lacks much of what is served. It is served when
	// somebody confirms its name.
	Lost []string `json:"lost,omitempty"`
	// Quarantined says that it is among those that are not served any more.
	Quarantined bool `json:"quarantined,omitempty"`
}

// Quarantined is a generation with which the dispatcher crashed.
type Quarantined struct {
	Generation string    `json:"generation"`
	Since      time.Time `json:"since"`
	Reason     string    `json:"reason"`
}

// ResourceStatus is whether a resource of the API is known.
type ResourceStatus struct {
	Resource string `json:"resource"`
	Synced   bool   `json:"synced"` // it has been listed
	Error    string `json:"error,omitempty"`
}

// Status returns the status as of now. It is for the goroutine of Run.
func (m *Mirror) status() Status {
	s := Status{Next: m.next(), RefusedCount: len(m.refused), Quarantined: m.quarantined, Crashed: m.crashed, Error: m.broken}
	s.Refused = m.refused[:min(len(m.refused), maxRefused)]
	if m.serving != nil {
		s.Generation, s.Objects = m.serving.hash, m.serving.summary.Kinds
	}
	for _, st := range m.stores {
		st.mu.Lock()
		r := ResourceStatus{Resource: st.Resource, Synced: st.synced}
		if st.err != nil {
			r.Error = cut(st.err.Error())
		}
		st.mu.Unlock()
		s.Resources = append(s.Resources, r)
	}
	return s
}

// maxError bounds what is told of an error, in bytes.
const maxError = 300

func cut(text string) string { return text[:min(len(text), maxError)] }

// tell writes the status, if it has changed.
func (m *Mirror) tell() {
	text, err := json.MarshalIndent(m.status(), "", " ")
	if err != nil || bytes.Equal(text, m.told) {
		return
	}
	if m.disk.replace(StatusFile, text) == nil {
		m.told = text
	}
}

// ReadStatus reads the status of the mirror in a directory.
func ReadStatus(directory string) (s Status, err error) {
	text, err := os.ReadFile(disk{directory}.at(StatusFile))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}
