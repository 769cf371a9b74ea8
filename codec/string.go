// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/binary"
	"math/bits"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// One byte repeated eight times, to look at eight bytes of a string at once
// (Hacker's Delight, "find the first zero byte").
const (
	ones       = 0x0101010101010101
	highs      = 0x80 * ones
	backslash8 = '\\' * ones
)

// special has the high bit of each byte of w set that is a quote, a backslash or
// a control character, up to the first one; what it has above that means nothing.
func special(w uint64) uint64 {
	// Flipping bit 1 turns the quote (0x22) into 0x20 and keeps the control
	// characters below 0x20: one comparison with 0x21 finds both.
	return (((w ^ 0x02*ones) - 0x21*ones) | ((w ^ backslash8) - ones)) & ^w & highs
}

// plainEnd returns the index of the first byte from i on that is a quote, a
// backslash or a control character, or len(b).
func plainEnd(b []byte, i int) int {
	for i+8 <= len(b) {
		if m := special(binary.LittleEndian.Uint64(b[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
		i += 8
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < ' ' || c == '"' || c == '\\' {
			return i
		}
	}
	return len(b)
}

// escapedEnd goes on with a string at i, where plainEnd found something other
// than its closing quote, and returns the index of that quote, or -2. Strings
// with one escape mostly have many: it looks for them block by block.
func (s *scanner) escapedEnd(i int) int {
	b := s.data
	for i+blockSize+unicodeLen <= len(b) {
		block := (*[blockSize + unicodeLen]byte)(b[i:])
		next := i + blockSize
		for mask := specials((*[blockSize]byte)(block[:])); mask != 0; {
			n := bits.TrailingZeros64(mask) % blockSize
			length := simpleLen
			if block[n] != '\\' || !isSimpleEscape[block[n+1]] {
				if r := hex4(block[n : n+unicodeLen]); r < 0 || utf16.IsSurrogate(r) {
					at := i + n
					if next = s.afterSpecial(at); next <= at {
						return next
					}
					break
				}
				length = unicodeLen
			}
			mask &^= 3 << n
			next = i + max(blockSize, n+length)
		}
		i = next
	}
	for {
		i = plainEnd(b, i)
		next := s.afterSpecial(i)
		if next <= i {
			return next
		}
		i = next
	}
}

// afterSpecial returns the index behind the escape at i, i itself if that is the
// closing quote, or -2.
func (s *scanner) afterSpecial(i int) int {
	const failed = -2
	b := s.data
	switch {
	case i >= len(b):
		s.fail(i, faultEnd)
		return failed
	case b[i] == '"':
		return i
	case b[i] != '\\':
		s.fail(i, faultControl)
		return failed
	case i+1 < len(b) && isSimpleEscape[b[i+1]]:
		return i + 2
	}
	n, fault := unicodeEscapeLen(b[i:])
	if fault == faultSurrogate && s.lenient {
		n, fault = len(`\uXXXX`), ""
	}
	if fault != "" {
		s.fail(i, fault)
		return failed
	}
	return i + n
}

// The lengths of escapes: \n, and \uXXXX.
const (
	simpleLen  = 2
	unicodeLen = 6
)

// isSimpleEscape tells which bytes may follow a backslash without more.
var isSimpleEscape = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// unicodeEscapeLen returns the length of the escape \uXXXX at the start of b. A
// pair of surrogates is one escape.
func unicodeEscapeLen(b []byte) (n int, fault string) {
	if len(b) < 2 {
		return 0, faultEnd
	}
	switch r := hex4(b); {
	case r < 0:
		return 0, faultEscape
	case !utf16.IsSurrogate(r):
		return 6, ""
	case utf16.DecodeRune(r, hex4(b[6:])) == utf8.RuneError:
		return 0, faultSurrogate
	}
	return 12, ""
}

// hex4 returns the code unit of the escape \uXXXX at the start of b, or -1.
func hex4(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	digit := func(i int) rune { return rune(hexValue[b[i]]) }
	return digit(2)<<12 | digit(3)<<8 | digit(4)<<4 | digit(5)
}

// hexValue has the value of each hexadecimal digit, and -1, which makes negative
// whatever it is part of, for other bytes.
var hexValue = newHexValue()

func newHexValue() (values [256]int8) {
	for i := range values {
		values[i] = -1
	}
	for v, c := range hexDigits {
		values[c], values[unicode.ToUpper(c)] = int8(v), int8(v)
	}
	return values
}

// appendUnescaped appends the text of raw, which is what the scanner accepted
// between two quotes, to dst.
func appendUnescaped(dst, raw []byte) []byte {
	for {
		i := plainEnd(raw, 0)
		dst = append(dst, raw[:i]...)
		if i == len(raw) {
			return dst
		}
		n := 2
		switch c := raw[i+1]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r := hex4(raw[i:])
			n = 6
			if utf16.IsSurrogate(r) {
				if r = utf16.DecodeRune(r, hex4(raw[i+6:])); r != utf8.RuneError {
					n = 12
				}
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, c)
		}
		raw = raw[i+n:]
	}
}
