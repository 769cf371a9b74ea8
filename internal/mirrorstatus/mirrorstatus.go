// SPDX-License-Identifier: Apache-2.0

// Package mirrorstatus is the status of a mirror of a Kubernetes API: a file that the
// mirror writes beside its generations, and the dispatcher that reads these shows. It
// knows neither of them.
package mirrorstatus

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// The names in a mirror's directory that others read.
const (
	File = "status.json" // a Mirror, as JSON
	Link = "current"     // to the generation that is served: a directory of manifests
)

// The bounds of a Mirror. Whoever writes one keeps them, and whoever reads one does not
// rely on that.
const (
	MaxRefused     = 200
	MaxQuarantined = 16
	MaxWorkloads   = 200
	MaxBytes       = 1 << 20 // of File
)

// The reasons for which an object is refused.
const (
	Invalid    = "Invalid"    // alone
	Conflict   = "Conflict"   // beside what is accepted, and not alone
	Unresolved = "Unresolved" // a Secret or ConfigMap that it names is not there
	Waiting    = "Waiting"    // too much is at fault to have judged it yet
	Bounds     = "Bounds"     // its cluster has more than is mirrored, or may not call what it names
)

// Mirror is how a mirror is. A list is never null in one that was read.
type Mirror struct {
	// Generation is the name of the one that is served; "": there is none.
	Generation string         `json:"generation"`
	Since      time.Time      `json:"since,omitzero"` // when it began to be served
	Objects    map[string]int `json:"objects"`        // in it, by kind
	// Behind is since when what is served is not what was accepted of the API; zero: it is.
	Behind time.Time `json:"behind,omitzero"`
	// Next waits for its time, or is held back.
	Next *NextGeneration `json:"next"`
	// Refused are objects that are not served as they stand in the API, at most
	// MaxRefused of RefusedCount.
	Refused         []RefusedObject `json:"refused"`
	RefusedCount    int             `json:"refusedCount"`
	RefusedByReason map[string]int  `json:"refusedByReason"`
	// Quarantined are generations that are not served any more.
	Quarantined []QuarantinedGeneration `json:"quarantined"`
	// Crashed says that the mirror ended while it judged what the API has now.
	Crashed bool `json:"crashed,omitempty"`
	// Heard is when the API last answered for the resource of which that is the longest
	// ago; zero: there is one that has never been listed.
	Heard     time.Time          `json:"heard,omitzero"`
	Resources []MirroredResource `json:"resources"`
	// Workloads are the clusters that may have configurations mirrored, at most MaxWorkloads.
	Workloads []MirroredWorkload `json:"workloads"`
	// Replicas is how many were counted last, by the endpoints of their Service; 0: they
	// have not been counted yet.
	Replicas int    `json:"replicas,omitempty"`
	Error    string `json:"error,omitempty"` // of the directory, or of this file
}

// NextGeneration is one that is not served yet.
type NextGeneration struct {
	Generation string    `json:"generation"`
	At         time.Time `json:"at,omitzero"` // when it will be served
	// Lost is why it is held back: it lacks much of what is served. It is served when
	// somebody confirms its name.
	Lost []string `json:"lost,omitempty"`
	// Quarantined says that it is among those that are not served any more.
	Quarantined bool `json:"quarantined,omitempty"`
}

// Confirm returns the command by which somebody confirms the generation.
func (n *NextGeneration) Confirm() string {
	return fmt.Sprintf("kubectl annotate registries.%s %s --overwrite %s=%s", v1alpha1.Group, v1alpha1.RegistryName, v1alpha1.ConfirmShrinkAnnotation, n.Generation)
}

// RefusedObject is an object that is not served as it stands in the API.
type RefusedObject struct {
	Object string `json:"object"` // Kind/name
	// Kept says that its last accepted version is served; otherwise nothing of it is.
	Kept   bool   `json:"kept"`
	Reason string `json:"reason"` // Invalid, Conflict, Unresolved, Waiting or Bounds

	Problems []manifest.Problem `json:"problems"`
}

// QuarantinedGeneration is a generation with which the dispatcher crashed.
type QuarantinedGeneration struct {
	Generation string    `json:"generation"`
	Since      time.Time `json:"since"`
	Reason     string    `json:"reason"`
	// Mirrored are the hashes of what of workload clusters it had and the one before had
	// not. They are not served any more, so that no cluster holds up the changes of others.
	Mirrored []string `json:"mirrored,omitempty"`
}

// MirroredWorkload is a cluster that may have configurations mirrored.
type MirroredWorkload struct {
	Cluster string `json:"cluster"`
	// Served is how many of its configurations are in what was decided last.
	Served   int  `json:"served"`
	Answered bool `json:"answered"` // its API has, since the mirror started
	// Error is why it does not now; what was mirrored last stays.
	Error string `json:"error,omitempty"`
	// Held: it has lost most of what is mirrored, which stays until the Cluster has the
	// annotation dispatcher.dev/confirm-mirror-shrink with this value.
	Held string `json:"held,omitempty"`
}

// MirroredResource is whether a resource of the API is known.
type MirroredResource struct {
	Resource string    `json:"resource"`
	Synced   bool      `json:"synced"` // it has been listed
	Heard    time.Time `json:"heard,omitzero"`
	Error    string    `json:"error,omitempty"`
}

// Why what is served is not what the API has.
const (
	Pending     = "pending" // the next generation waits for its time
	HeldBack    = "held_back"
	Quarantine  = "quarantined"
	CrashedWith = "crashed"
)

// BehindBecause returns Pending, HeldBack, Quarantine or CrashedWith; "": it is not behind.
func (m *Mirror) BehindBecause() string {
	switch {
	case m.Crashed:
		return CrashedWith
	case m.Next == nil:
		return ""
	case m.Next.Quarantined:
		return Quarantine
	case len(m.Next.Lost) > 0:
		return HeldBack
	}
	return Pending
}

// Short shortens the name of a generation to what people compare.
func Short(generation string) string { return generation[:min(len(generation), 12)] }

// Accepted returns how many objects are served.
func (m *Mirror) Accepted() (n int) {
	for _, of := range m.Objects {
		n += of
	}
	return n
}

// Read reads the status of the mirror in a directory. The Mirror is never nil: where it
// cannot be read, its Error says why.
func Read(directory string) *Mirror {
	m, err := read(filepath.Join(directory, File))
	if err != nil {
		m = &Mirror{Error: "its status cannot be read: " + err.Error()}
	}
	m.bound()
	return m
}

func read(name string) (*Mirror, error) {
	f, err := os.Open(filepath.Clean(name))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("%s has more than %d bytes", name, MaxBytes)
	}
	m := &Mirror{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// bound makes of null lists empty ones, and of long ones short ones.
func (m *Mirror) bound() {
	m.Refused = append([]RefusedObject{}, m.Refused[:min(len(m.Refused), MaxRefused)]...)
	m.Quarantined = append([]QuarantinedGeneration{}, m.Quarantined[max(0, len(m.Quarantined)-MaxQuarantined):]...)
	m.Resources = append([]MirroredResource{}, m.Resources...)
	m.Workloads = append([]MirroredWorkload{}, m.Workloads[:min(len(m.Workloads), MaxWorkloads)]...)
	if m.Objects == nil {
		m.Objects = map[string]int{}
	}
	if m.RefusedByReason == nil {
		m.RefusedByReason = map[string]int{}
	}
	for i := range m.Refused {
		m.Refused[i].Problems = append([]manifest.Problem{}, m.Refused[i].Problems...)
	}
}

// Write returns the file's content, within MaxBytes: of the refused objects so many are
// left out as must be.
func (m Mirror) Write() ([]byte, error) {
	for {
		m.bound()
		text, err := json.MarshalIndent(m, "", " ")
		if err != nil || len(text) <= MaxBytes || len(m.Refused) == 0 {
			return text, err
		}
		m.Refused = m.Refused[:len(m.Refused)/2]
	}
}
