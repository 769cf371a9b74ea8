// SPDX-License-Identifier: Apache-2.0

package codec

// skip consumes one value of any kind, checking all of it. It is where almost
// all time of a Decode goes, which is why it keeps its state in local variables.
func (s *scanner) skip() bool {
	b, i, depth := s.data, s.pos, s.depth
	outer := depth
	for {
		// A value, or the opening of a container up to its first value.
		for uint(i) < uint(len(b)) && isSpace(b[i]) {
			i++
		}
		if uint(i) >= uint(len(b)) {
			return s.fail(i, faultEnd)
		}
		switch c := b[i]; c {
		case '"':
			if i = s.stringEnd(b, i+1); i < 0 {
				return false
			}
		case '{', '[':
			closer := c + 2 // '}' and ']'
			if depth++; depth > maxDepth {
				return s.fail(i, faultDepth)
			}
			s.closers[depth&(len(s.closers)-1)] = closer
			i++
			for uint(i) < uint(len(b)) && isSpace(b[i]) {
				i++
			}
			if uint(i) < uint(len(b)) && b[i] == closer {
				break
			}
			if c == '{' {
				if i = s.keyEnd(b, i); i < 0 {
					return false
				}
			}
			continue
		default:
			if i = s.scalarEnd(b, i); i < 0 {
				return false
			}
		}
		// Behind a value: close containers until another value follows.
		for {
			if depth == outer {
				s.pos = i
				return true
			}
			for uint(i) < uint(len(b)) && isSpace(b[i]) {
				i++
			}
			if uint(i) >= uint(len(b)) {
				return s.fail(i, faultEnd)
			}
			closer := s.closers[depth&(len(s.closers)-1)]
			c := b[i]
			if c == closer {
				i++
				depth--
				continue
			}
			if c != ',' {
				return s.fail(i, faultSeparator)
			}
			i++
			if closer == '}' {
				if i = s.keyEnd(b, i); i < 0 {
					return false
				}
			}
			break
		}
	}
}

// keyEnd returns the index behind the colon of the key at i, or -1.
func (s *scanner) keyEnd(b []byte, i int) int {
	for uint(i) < uint(len(b)) && isSpace(b[i]) {
		i++
	}
	if uint(i) >= uint(len(b)) {
		s.fail(i, faultEnd)
		return -1
	}
	if b[i] != '"' {
		s.fail(i, faultKey)
		return -1
	}
	if i = s.stringEnd(b, i+1); i < 0 {
		return -1
	}
	for uint(i) < uint(len(b)) && isSpace(b[i]) {
		i++
	}
	if uint(i) >= uint(len(b)) {
		s.fail(i, faultEnd)
		return -1
	}
	if b[i] != ':' {
		s.fail(i, faultColon)
		return -1
	}
	return i + 1
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
