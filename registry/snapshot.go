// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"sync/atomic"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
)

// Snapshot is everything that the configuration says, compiled: immutable, and
// one consistent whole.
type Snapshot struct {
	// Hash is a hex SHA-256 over the sources' content, and over what is pending.
	Hash string
	compile.Compiled
	Pending []Pending // webhooks that are not called yet, or whose version of before is

	users atomic.Int64 // admissions that are decided by it
	holds []*held      // its Resources, while it is alive; the rotation's to change
}

// shortHash is the length of a Snapshot's short name, in hex digits.
const shortHash = 12

// ShortHash returns the beginning of the Hash, for people.
func (s *Snapshot) ShortHash() string { return s.Hash[:min(shortHash, len(s.Hash))] }

// silent returns the Resources that have never answered.
func (s *Snapshot) silent() []*held {
	var list []*held
	for _, h := range s.holds {
		if !h.proven {
			list = append(list, h)
		}
	}
	return list
}

// dryRun returns what the bindings of the webhooks that a Resource serves want it to
// answer; nil: nothing.
func (s *Snapshot) dryRun(identity string) *chain.DryRun {
	for name, c := range s.Clusters {
		for _, phase := range []chain.Phase{chain.Mutating, chain.Validating} {
			for _, w := range c.Chain(phase).Webhooks {
				if w.Probe == chain.ProbeReview && w.ServedBy() == identity {
					return &chain.DryRun{Cluster: name, Phase: phase, Webhook: w}
				}
			}
		}
	}
	return nil
}

// Acquire returns the current Snapshot, or nil before the first good Load. Who
// gets one calls Release when the last call by it has been begun.
func (r *Registry) Acquire() *Snapshot {
	for {
		s := r.rotation.current.Load()
		if s == nil {
			return nil
		}
		s.users.Add(1)
		if r.rotation.current.Load() == s {
			return s
		}
		s.users.Add(-1) // it was replaced just now, and may be gone already
	}
}

// Release ends the use of a Snapshot that Acquire returned.
func (s *Snapshot) Release() { s.users.Add(-1) }
