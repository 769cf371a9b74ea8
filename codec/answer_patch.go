// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"unicode/utf8"

	"github.com/admission-dispatcher/dispatcher/codec/json"
)

// patch is the patch of an answer.
type patch struct {
	bytes       []byte // JSON, owned by the patch
	isCounted   bool   // what follows is known
	operations  int
	undecodable bool
}

// counted returns p with its operations counted, with a scanner whose document is done.
func (p *patch) counted(s *json.Scanner[[]byte]) *patch {
	if !p.isCounted {
		n, ok := countOperations(s, p.bytes)
		p.isCounted, p.operations, p.undecodable = true, n, !ok
	}
	return p
}

// countOperations returns the number of operations in the JSON array text, for
// which null is empty, as nothing is. A null among them is one, which does not
// apply.
func countOperations(s *json.Scanner[[]byte], text []byte) (n int, ok bool) {
	if len(text) == 0 {
		return 0, true
	}
	s.Reset(text)
	if !utf8.Valid(text) {
		return 0, false
	}
	if s.Next() == 'n' {
		return 0, s.Skip() && s.End()
	}
	ok = s.Elements(func() bool {
		n++
		c := s.Next()
		return (c == '{' || c == 'n') && s.Skip()
	})
	return n, ok && s.End()
}
