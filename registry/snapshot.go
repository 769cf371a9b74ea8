// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"sync/atomic"

	"github.com/admission-dispatcher/dispatcher/registry/compile"
)

// Snapshot is everything that the configuration says, compiled: immutable, and
// one consistent whole.
type Snapshot struct {
	// Hash is a hex SHA-256 over the sources' content, and over what is pending.
	Hash string
	compile.Compiled
	Pending []Pending // webhooks that are not called yet, or whose version of before is

	users *atomic.Int64 // admissions that are decided by it
}

// shortHash is the length of a Snapshot's short name, in hex digits.
const shortHash = 12

// ShortHash returns the beginning of the Hash, for people.
func (s *Snapshot) ShortHash() string { return s.Hash[:min(shortHash, len(s.Hash))] }
