// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pooled"
)

// A pooled scanner has nothing of the document that it read last.
func TestPooledIsEmpty(t *testing.T) {
	s := new(scanner)
	pooled.Check(t, s, s.release, "Scanner.closers[]") // room that the next document overwrites
}
