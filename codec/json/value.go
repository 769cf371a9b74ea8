// SPDX-License-Identifier: Apache-2.0

package json

import "math/bits"

// Skip consumes one value of any kind, checking all of it. It is where almost
// all time of reading a review goes, which is why it keeps its state in local variables
// and looks for the common form of a token, compact and plain, first.
//
//nolint:funlen // with a call per string and per white space a pod took 20 % longer
func (s *Scanner[T]) Skip() bool {
	b, i, depth := s.Data, uint(s.Pos), s.Depth
	outer := depth
	s.Deepest = depth
	key := false // expected next, with its colon
	for {
		if i < uint(len(b)) && b[i] <= ' ' {
			i = spaceEnd(b, i)
		}
		if i >= uint(len(b)) {
			return s.Fail(len(b), faultEnd)
		}
		switch c := b[i]; {
		case c == '"':
			i++
			for i+8 <= uint(len(b)) {
				m := special(word(b[i : i+8]))
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
				return s.unexpected(int(i), faultColon)
			}
			i++
			key = false
			continue
		case key:
			return s.Fail(int(i), faultKey)
		case c == '{' || c == '[':
			if depth++; depth > s.Deepest {
				if s.Deepest = depth; depth > MaxDepth {
					return s.Fail(int(i), faultDepth)
				}
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
				s.Pos = int(i)
				return true
			}
			if i < uint(len(b)) && b[i] <= ' ' {
				i = spaceEnd(b, i)
			}
			if i >= uint(len(b)) {
				return s.Fail(len(b), faultEnd)
			}
			closer := s.closers[depth&(len(s.closers)-1)]
			c := b[i]
			i++
			if c == ',' {
				key = closer == '}'
				break
			}
			if c != closer {
				return s.Fail(int(i-1), faultSeparator)
			}
			depth--
		}
	}
}

// passDepth is how deep a value may nest that Pass consumes: beyond what any writer
// of JSON gets past the API server, which stops at 10,000.
const passDepth = 1 << 16

// Pass is Skip for what need not be right otherwise: it goes deeper, and it is not
// made to be fast.
func (s *Scanner[T]) Pass() bool {
	var braces [passDepth / 64]uint64 // a bit for each open container, set if that is an object
	for depth := 0; ; {
		switch c := s.Next(); {
		case c == '"':
			if _, _, ok := s.Quoted(); !ok {
				return false
			}
		case c == '{' || c == '[':
			if depth == passDepth {
				return s.Fail(s.Pos, faultDepth)
			}
			word, bit := &braces[depth/64], uint64(1)<<(depth%64)
			*word &^= bit
			if c == '{' {
				*word |= bit
			}
			depth++
			s.Pos++
			if s.Next() == c+2 { // '}' and ']'
				break // it is closed below
			}
			if c == '{' && !s.passKey() {
				return false
			}
			continue
		case s.Pos >= len(s.Data):
			return s.Fail(s.Pos, faultEnd)
		default:
			end := s.scalarEnd(s.Data, s.Pos)
			if end < 0 {
				return false
			}
			s.Pos = end
		}
		for more := false; !more; { // behind a value: close containers until another one follows
			if depth == 0 {
				return true
			}
			isObject := braces[(depth-1)/64]>>((depth-1)%64)&1 != 0
			switch c := s.Next(); {
			case c == ',':
				s.Pos++
				if isObject && !s.passKey() {
					return false
				}
				more = true
			case c == '}' && isObject, c == ']' && !isObject:
				s.Pos++
				depth--
			default:
				return s.unexpected(s.Pos, faultSeparator)
			}
		}
	}
}

// passKey consumes a key and its colon.
func (s *Scanner[T]) passKey() bool {
	_, _, ok := s.Key()
	return ok
}

func spaceEnd[T Text](b T, i uint) uint {
	for i < uint(len(b)) && IsSpace(b[i]) {
		i++
	}
	return i
}

// scalarEnd returns the index behind the number or literal at i, or -1.
func (s *Scanner[T]) scalarEnd(b T, i int) int {
	literal := ""
	switch c := b[i]; {
	case c == '-' || '0' <= c && c <= '9':
		end := numberEnd(b, i)
		if end < 0 {
			s.Fail(i, faultNumber)
		}
		return end
	case c == 't':
		literal = "true"
	case c == 'f':
		literal = "false"
	case c == 'n':
		literal = "null"
	}
	end := i + len(literal)
	if literal == "" || end > len(b) || string(b[i:end]) != literal {
		s.Fail(i, faultValue)
		return -1
	}
	return end
}

// numberEnd returns the index behind the number at i, or -1.
func numberEnd[T Text](b T, i int) int {
	if b[i] == '-' {
		i++
	}
	first := i
	if i = digitsEnd(b, i); i == first || b[first] == '0' && i > first+1 {
		return -1
	}
	if uint(i) < uint(len(b)) && b[i] == '.' {
		first = i + 1
		if i = digitsEnd(b, first); i == first {
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
			return -1
		}
	}
	return i
}

func digitsEnd[T Text](b T, i int) int {
	for uint(i) < uint(len(b)) && b[i]-'0' <= 9 {
		i++
	}
	return i
}
