// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import "strings"

func (s *scanner) string() bool {
	if !s.skip('"') {
		return false
	}
	for {
		s.pos += plainLen(s.text[s.pos:])
		if s.skip('"') {
			return true
		}
		n := escapeLength(s.text[s.pos:])
		if n == 0 {
			return false
		}
		s.pos += n
	}
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

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
