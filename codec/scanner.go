// SPDX-License-Identifier: Apache-2.0

package codec

import "fmt"

// maxDepth is how deep a document may nest, as in encoding/json and jsontext.
const maxDepth = 10_000

// scanner walks over one JSON document (RFC 8259), strictly: what it accepts
// every other JSON reader accepts. It neither copies nor allocates, and it does
// not recurse where the input decides how deep. Whether strings are UTF-8 it does
// not look at.
//
// Methods that can fail return false, with fault and pos telling why and where.
type scanner struct {
	data  []byte
	pos   int
	depth int // of open containers
	fault string

	// lenient takes half a surrogate pair for U+FFFD, as Go's decoders do, and
	// halved notes it.
	lenient, halved bool

	// closers has the closing byte of each container that skip has open. It is
	// longer than maxDepth so that an index masked to its length needs no check.
	closers [1 << 14]byte
}

// release forgets the document.
func (s *scanner) release() {
	s.data, s.pos, s.depth, s.fault, s.lenient, s.halved = nil, 0, 0, "", false, false
}

// fail records the first fault, at pos.
func (s *scanner) fail(pos int, fault string) bool {
	if s.fault == "" {
		s.pos, s.fault = pos, fault
	}
	return false
}

// syntaxError says what fail recorded. It quotes no input.
func (s *scanner) syntaxError() string {
	return fmt.Sprintf("not strict JSON at byte %d: %s", s.pos, s.fault)
}

// The faults, as users see them.
const (
	faultEnd       = "unexpected end"
	faultUTF8      = "invalid UTF-8"
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

// next skips white space and returns the byte at pos without consuming it, or 0
// at the end. No token starts with a zero byte.
func (s *scanner) next() byte {
	for uint(s.pos) < uint(len(s.data)) {
		c := s.data[s.pos]
		if c > ' ' || !isSpace(c) {
			return c
		}
		s.pos++
	}
	return 0
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// unexpected fails because of the byte at pos.
func (s *scanner) unexpected(fault string) bool {
	if s.pos >= len(s.data) {
		fault = faultEnd
	}
	return s.fail(s.pos, fault)
}

// end makes sure that nothing but white space is left.
func (s *scanner) end() bool {
	s.next()
	return s.pos == len(s.data) || s.fail(s.pos, faultTrailing)
}

// enter consumes the brace or bracket at pos.
func (s *scanner) enter() bool {
	s.pos++
	s.depth++
	return s.depth <= maxDepth || s.fail(s.pos, faultDepth)
}

// more tells whether the container that closer ends has another member or
// element, consuming what stands between them or the closer. first is true
// right after enter. After a failure it returns false.
func (s *scanner) more(first bool, closer byte) bool {
	switch c := s.next(); {
	case c == closer:
		s.pos++
		s.depth--
		return false
	case first:
		return true
	case c == ',':
		s.pos++
		return true
	}
	return s.unexpected(faultSeparator)
}

// expects consumes a member's key and colon if the key is name and they are as
// compact JSON has them. name needs no escapes.
func (s *scanner) expects(name string) bool {
	rest := s.data[s.pos:]
	n := len(name)
	if len(rest) < n+3 || rest[0] != '"' || rest[n+1] != '"' || rest[n+2] != ':' || string(rest[1:n+1]) != name {
		return false
	}
	s.pos += n + 3
	return true
}

// quotedKey consumes a member's key and colon and returns the key's text between
// the quotes, and whether that has escapes.
func (s *scanner) quotedKey() (raw []byte, escaped, ok bool) {
	if s.next() != '"' {
		return nil, false, s.unexpected(faultKey)
	}
	raw, escaped, ok = s.quoted()
	if !ok {
		return nil, false, false
	}
	if s.next() != ':' {
		return nil, false, s.unexpected(faultColon)
	}
	s.pos++
	return raw, escaped, true
}

// quoted consumes the string whose opening quote is at pos and returns the text
// between the quotes, and whether that has escapes.
func (s *scanner) quoted() (raw []byte, escaped, ok bool) {
	start := s.pos + 1
	i := plainEnd(s.data, start)
	if uint(i) >= uint(len(s.data)) || s.data[i] != '"' {
		escaped = true
		if i = s.escapedEnd(i); i < 0 {
			return nil, false, false
		}
	}
	s.pos = i + 1
	return s.data[start:i:i], escaped, true
}
