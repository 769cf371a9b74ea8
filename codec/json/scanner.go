// SPDX-License-Identifier: Apache-2.0

// Package json scans JSON (RFC 8259) strictly: what it accepts every other reader of
// JSON accepts, and reads alike. It is the one scanner of reviews, answers, objects
// and patches.
package json

import "fmt"

// MaxDepth is how deep a document may nest, as in encoding/json and jsontext.
const MaxDepth = 10_000

// Text is JSON, or a part of it. It is never written.
type Text interface{ []byte | string }

// Scanner walks over one document. It does not recurse where the input decides how
// deep, and neither copies nor allocates, but weighs 16 KiB itself. Whether strings are
// UTF-8 it does not look at.
//
// Methods that can fail return false, with Fault and Pos telling why and where.
type Scanner[T Text] struct {
	state[T]

	// closers has the closing byte of each container that Skip has open. It is
	// longer than MaxDepth so that an index masked to its length needs no check.
	closers [1 << 14]byte
}

// state is what a Scanner knows of its document.
type state[T Text] struct {
	Data  T
	Pos   int
	Depth int // of open containers
	// Deepest is the greatest depth in the value that Skip consumed last.
	Deepest int
	Fault   string // the first; empty: none

	// Lenient takes half a surrogate pair for U+FFFD, as Go's decoders do, and
	// Halved notes it.
	Lenient, Halved bool
}

// Reset makes s a scanner at the start of data, which is strict.
func (s *Scanner[T]) Reset(data T) { s.state = state[T]{Data: data} }

// Fail records the first fault, at pos.
func (s *Scanner[T]) Fail(pos int, fault string) bool {
	if s.Fault == "" {
		s.Pos, s.Fault = pos, fault
	}
	return false
}

// SyntaxError says what Fail recorded. It quotes no input.
func (s *Scanner[T]) SyntaxError() string {
	return fmt.Sprintf("not strict JSON at byte %d: %s", s.Pos, s.Fault)
}

// The faults, as users see them.
const (
	FaultUTF8      = "invalid UTF-8"
	faultEnd       = "unexpected end"
	faultValue     = "expected a value"
	faultKey       = "expected a key"
	faultColon     = "expected a colon"
	faultSeparator = "expected a comma or the end of the object or array"
	faultTrailing  = "expected nothing after the document"
	faultDepth     = "nested deeper than 10,000"
	faultControl   = "control character in a string"
	faultEscape    = "invalid escape in a string"
	faultSurrogate = "surrogate escape without its other half"
	faultNumber    = "invalid number"
)

// Next skips white space and returns the byte at Pos without consuming it, or 0
// at the end. No token starts with a zero byte.
func (s *Scanner[T]) Next() byte {
	for uint(s.Pos) < uint(len(s.Data)) {
		c := s.Data[s.Pos]
		if c > ' ' || !IsSpace(c) {
			return c
		}
		s.Pos++
	}
	return 0
}

// IsSpace reports whether c is white space.
func IsSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// unexpected fails because of the byte at i, which may be the end.
func (s *Scanner[T]) unexpected(i int, fault string) bool {
	if i >= len(s.Data) {
		i, fault = len(s.Data), faultEnd
	}
	return s.Fail(i, fault)
}

// End makes sure that nothing but white space is left.
func (s *Scanner[T]) End() bool {
	s.Next()
	return s.Pos == len(s.Data) || s.Fail(s.Pos, faultTrailing)
}

// Enter consumes the brace or bracket at Pos.
func (s *Scanner[T]) Enter() bool {
	s.Pos++
	s.Depth++
	return s.Depth <= MaxDepth || s.Fail(s.Pos, faultDepth)
}

// More tells whether the container that closer ends has another member or
// element, consuming what stands between them or the closer. first is true
// right after Enter. After a failure it returns false.
func (s *Scanner[T]) More(first bool, closer byte) bool {
	switch c := s.Next(); {
	case c == closer:
		s.Pos++
		s.Depth--
		return false
	case first:
		return true
	case c == ',':
		s.Pos++
		return true
	}
	return s.unexpected(s.Pos, faultSeparator)
}

// Elements has visit read each element of the array at Pos.
func (s *Scanner[T]) Elements(visit func() bool) bool {
	if s.Next() != '[' || !s.Enter() {
		return false
	}
	for first := true; s.More(first, ']'); first = false {
		if !visit() {
			return false
		}
	}
	return s.Fault == ""
}

// Expects consumes a member's key and colon if the key is name and they are as
// compact JSON has them. name needs no escapes.
func (s *Scanner[T]) Expects(name string) bool {
	rest := s.Data[s.Pos:]
	n := len(name)
	if len(rest) < n+3 || rest[0] != '"' || rest[n+1] != '"' || rest[n+2] != ':' || string(rest[1:n+1]) != name {
		return false
	}
	s.Pos += n + 3
	return true
}

// Key consumes a member's key and colon and returns the key's text between the
// quotes, and whether that has escapes.
func (s *Scanner[T]) Key() (raw T, escaped, ok bool) {
	if s.Next() != '"' {
		return raw, false, s.unexpected(s.Pos, faultKey)
	}
	raw, escaped, ok = s.Quoted()
	if !ok {
		return raw, false, false
	}
	if s.Next() != ':' {
		return raw, false, s.unexpected(s.Pos, faultColon)
	}
	s.Pos++
	return raw, escaped, true
}

// Quoted consumes the string whose opening quote is at Pos and returns the text
// between the quotes, and whether that has escapes.
func (s *Scanner[T]) Quoted() (raw T, escaped, ok bool) {
	start := s.Pos + 1
	i := plainEnd(s.Data, start)
	if uint(i) >= uint(len(s.Data)) || s.Data[i] != '"' {
		escaped = true
		if i = s.escapedEnd(i); i < 0 {
			return raw, false, false
		}
	}
	s.Pos = i + 1
	return s.Data[start:i], escaped, true
}
