// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/binary"
	"math/bits"
)

// skip consumes one value of any kind, checking all of it. It is where almost
// all time of a Decode goes, which is why it keeps its state in local variables
// and looks for the common form of a token, compact and plain, first.
//
//nolint:funlen // with a call per string and per white space a pod took 20 % longer
func (s *scanner) skip() bool {
	b, i, depth := s.data, uint(s.pos), s.depth
	outer := depth
	key := false // expected next, with its colon
	for {
		if i < uint(len(b)) && b[i] <= ' ' {
			i = spaceEnd(b, i)
		}
		if i >= uint(len(b)) {
			return s.fail(len(b), faultEnd)
		}
		switch c := b[i]; {
		case c == '"':
			i++
			for i+8 <= uint(len(b)) {
				m := special(binary.LittleEndian.Uint64(b[i : i+8]))
				if m != 0 {
					i += uint(bits.TrailingZeros64(m)) / 8
					break
				}
				i += 8
			}
			if i < uint(len(b)) && b[i] == '"' {
				i++
			} else {
				end := s.stringEnd(b, int(i))
				if end < 0 {
					return false
				}
				i = uint(end)
			}
			if !key {
				break
			}
			if i < uint(len(b)) && b[i] <= ' ' {
				i = spaceEnd(b, i)
			}
			if i >= uint(len(b)) || b[i] != ':' {
				return s.failAt(i, faultColon)
			}
			i++
			key = false
			continue
		case key:
			return s.fail(int(i), faultKey)
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return s.fail(int(i), faultDepth)
			}
			closer := c + 2 // '}' and ']'
			s.closers[depth&(len(s.closers)-1)] = closer
			i++
			if i < uint(len(b)) && b[i] <= ' ' {
				i = spaceEnd(b, i)
			}
			if i < uint(len(b)) && b[i] == closer {
				break
			}
			key = c == '{'
			continue
		default:
			end := s.scalarEnd(b, int(i))
			if end < 0 {
				return false
			}
			i = uint(end)
		}
		// Behind a value: close containers until another value follows.
		for {
			if depth == outer {
				s.pos = int(i)
				return true
			}
			if i < uint(len(b)) && b[i] <= ' ' {
				i = spaceEnd(b, i)
			}
			if i >= uint(len(b)) {
				return s.fail(len(b), faultEnd)
			}
			closer := s.closers[depth&(len(s.closers)-1)]
			c := b[i]
			i++
			if c == ',' {
				key = closer == '}'
				break
			}
			if c != closer {
				return s.fail(int(i-1), faultSeparator)
			}
			depth--
		}
	}
}

// passDepth is how deep a value may nest that pass consumes: beyond what any writer
// of JSON gets past the API server, which stops at 10,000.
const passDepth = 1 << 16

// pass is skip for what need not be right otherwise: it goes deeper, and it is not
// made to be fast.
func (s *scanner) pass() bool {
	var braces [passDepth / 64]uint64 // a bit for each open container, set if that is an object
	for depth := 0; ; {
		switch c := s.next(); {
		case c == '"':
			if _, _, ok := s.quoted(); !ok {
				return false
			}
		case c == '{' || c == '[':
			if depth == passDepth {
				return s.fail(s.pos, faultDepth)
			}
			word, bit := &braces[depth/64], uint64(1)<<(depth%64)
			*word &^= bit
			if c == '{' {
				*word |= bit
			}
			depth++
			s.pos++
			if s.next() == c+2 { // '}' and ']'
				break // it is closed below
			}
			if c == '{' && !s.memberKey() {
				return false
			}
			continue
		case s.pos >= len(s.data):
			return s.fail(s.pos, faultEnd)
		default:
			end := s.scalarEnd(s.data, s.pos)
			if end < 0 {
				return false
			}
			s.pos = end
		}
		for more := false; !more; { // behind a value: close containers until another one follows
			if depth == 0 {
				return true
			}
			isObject := braces[(depth-1)/64]>>((depth-1)%64)&1 != 0
			switch c := s.next(); {
			case c == ',':
				s.pos++
				if isObject && !s.memberKey() {
					return false
				}
				more = true
			case c == '}' && isObject, c == ']' && !isObject:
				s.pos++
				depth--
			default:
				return s.unexpected(faultSeparator)
			}
		}
	}
}

// memberKey consumes a key and its colon.
func (s *scanner) memberKey() bool {
	_, _, ok := s.quotedKey()
	return ok
}

// failAt fails at i, which may be the end.
func (s *scanner) failAt(i uint, fault string) bool {
	if i >= uint(len(s.data)) {
		fault = faultEnd
	}
	return s.fail(int(i), fault)
}

func spaceEnd(b []byte, i uint) uint {
	for i < uint(len(b)) && isSpace(b[i]) {
		i++
	}
	return i
}

// stringEnd returns the index behind the closing quote of the string whose first
// byte is at i, or -1.
func (s *scanner) stringEnd(b []byte, i int) int {
	i = plainEnd(b, i)
	if uint(i) < uint(len(b)) && b[i] == '"' {
		return i + 1
	}
	return s.escapedEnd(i) + 1
}

// scalarEnd returns the index behind the number or literal at i, or -1.
func (s *scanner) scalarEnd(b []byte, i int) int {
	literal := ""
	switch c := b[i]; {
	case c == '-' || '0' <= c && c <= '9':
		return s.numberEnd(b, i)
	case c == 't':
		literal = "true"
	case c == 'f':
		literal = "false"
	case c == 'n':
		literal = "null"
	}
	end := i + len(literal)
	if literal == "" || end > len(b) || string(b[i:end]) != literal {
		s.fail(i, faultValue)
		return -1
	}
	return end
}

// numberEnd returns the index behind the number at i, or -1.
func (s *scanner) numberEnd(b []byte, i int) int {
	start := i
	if b[i] == '-' {
		i++
	}
	first := i
	if i = digitsEnd(b, i); i == first || b[first] == '0' && i > first+1 {
		s.fail(start, faultNumber)
		return -1
	}
	if uint(i) < uint(len(b)) && b[i] == '.' {
		first = i + 1
		if i = digitsEnd(b, first); i == first {
			s.fail(start, faultNumber)
			return -1
		}
	}
	if uint(i) < uint(len(b)) && b[i]|0x20 == 'e' {
		i++
		if uint(i) < uint(len(b)) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		first = i
		if i = digitsEnd(b, first); i == first {
			s.fail(start, faultNumber)
			return -1
		}
	}
	return i
}

func digitsEnd(b []byte, i int) int {
	for uint(i) < uint(len(b)) && b[i]-'0' <= 9 {
		i++
	}
	return i
}
