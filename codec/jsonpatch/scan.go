// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import "strings"

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

func (s *scanner) string() bool {
	if !s.skip('"') {
		return false
	}
	rest := s.text[s.pos:]
	for i := 0; i < len(rest); i++ {
		c := rest[i]
		if c != '"' && c != '\\' && c >= ' ' {
			continue
		}
		if c == '"' {
			s.pos += i + 1
			return true
		}
		n := escapeLength(rest[i:])
		if n == 0 {
			s.pos += i
			return false
		}
		i += n - 1
	}
	s.pos = len(s.text)
	return false
}

// escapeLength returns the length of the escape sequence that s starts with,
// or 0 if it starts with none.
func escapeLength(s string) int {
	switch {
	case len(s) < 2 || s[0] != '\\':
		return 0
	case s[1] != 'u':
		if strings.IndexByte(`"\/bfnrt`, s[1]) < 0 {
			return 0
		}
		return 2
	case len(s) < 6:
		return 0
	}
	for i := 2; i < 6; i++ {
		if !isHex(s[i]) {
			return 0
		}
	}
	return 6
}

func (s *scanner) literal(word string) bool {
	if !strings.HasPrefix(s.text[s.pos:], word) {
		return false
	}
	s.pos += len(word)
	return true
}

func (s *scanner) number() bool {
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++
	} else if !s.digits() {
		return false
	}
	if s.peek() == '.' {
		s.pos++
		if !s.digits() {
			return false
		}
	}
	if c := s.peek(); c != 'e' && c != 'E' {
		return true
	}
	s.pos++
	if c := s.peek(); c == '+' || c == '-' {
		s.pos++
	}
	return s.digits()
}

func (s *scanner) digits() bool {
	start := s.pos
	for isDigit(s.peek()) {
		s.pos++
	}
	return s.pos > start
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
