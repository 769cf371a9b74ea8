// SPDX-License-Identifier: Apache-2.0

package json

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
