// SPDX-License-Identifier: Apache-2.0

package jsonpatch

const (
	space = " \t\r\n"
	null  = "null"

	// maxNesting is the limit of encoding/json, and so of v4.
	maxNesting = 10_000
)

// scanner skips over JSON text, strictly by RFC 8259. Its methods move pos
// behind what they skip, or report false and leave pos near the defect.
type scanner struct {
	text    string
	pos     int
	deepest int // greatest depth of a container skipped since it was last set
}

// peek returns the byte at pos, or 0 at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.text) {
		return s.text[s.pos]
	}
	return 0
}

func (s *scanner) space() {
	for s.pos < len(s.text) && isSpace(s.text[s.pos]) {
		s.pos++
	}
}

// next skips c and the white space on both sides of it, if c comes next.
func (s *scanner) next(c byte) bool {
	s.space()
	if s.peek() != c {
		return false
	}
	s.pos++
	s.space()
	return true
}

// value skips the value at pos, which is inside depth containers.
func (s *scanner) value(depth int) bool {
	switch s.peek() {
	case '"':
		return s.string()
	case '{':
		return s.enter(depth+1) && s.object(depth+1)
	case '[':
		return s.enter(depth+1) && s.array(depth+1)
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal(null)
	}
	return s.number()
}

func (s *scanner) enter(depth int) bool {
	s.deepest = max(s.deepest, depth)
	return depth <= maxNesting
}

func (s *scanner) object(depth int) bool {
	s.next('{')
	if s.skip('}') {
		return true
	}
	for s.string() && s.next(':') && s.value(depth) {
		if !s.next(',') {
			return s.skip('}')
		}
	}
	return false
}

func (s *scanner) array(depth int) bool {
	s.next('[')
	if s.skip(']') {
		return true
	}
	for s.value(depth) {
		if !s.next(',') {
			return s.skip(']')
		}
	}
	return false
}

// skip skips c alone, if it comes next.
func (s *scanner) skip(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.pos++
	return true
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }
