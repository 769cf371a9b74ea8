// SPDX-License-Identifier: Apache-2.0

package json

import (
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

// word is the eight bytes of b. The compiler makes one load of it.
func word[T Text](b T) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// special has the high bit of each byte of w set that is a quote, a backslash or
// a control character, up to the first one; what it has above that means nothing.
func special(w uint64) uint64 {
	// Flipping bit 1 turns the quote (0x22) into 0x20 and keeps the control
	// characters below 0x20: one comparison with 0x21 finds both.
	return (((w ^ 0x02*ones) - 0x21*ones) | ((w ^ backslash8) - ones)) & ^w & highs
}

// plainEnd returns the index of the first byte from i on that is a quote, a
// backslash or a control character, or len(b).
func plainEnd[T Text](b T, i int) int {
	for i+8 <= len(b) {
		if m := special(word(b[i : i+8])); m != 0 {
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

// blockSize is the number of bytes that specials looks at.
const blockSize = 64

// specials has a bit for each byte of block that is a quote, a backslash or a
// control character. Written out: with a loop, decoding text with many escapes took
// 14 % longer.
func specials[T Text](block T) uint64 {
	_ = block[blockSize-1]
	return ^(gather(ordinary(word(block[0:8]))) |
		gather(ordinary(word(block[8:16])))<<8 |
		gather(ordinary(word(block[16:24])))<<16 |
		gather(ordinary(word(block[24:32])))<<24 |
		gather(ordinary(word(block[32:40])))<<32 |
		gather(ordinary(word(block[40:48])))<<40 |
		gather(ordinary(word(block[48:56])))<<48 |
		gather(ordinary(word(block[56:64])))<<56)
}

// ordinary has the high bit of each byte of w set that is not special. Unlike
// special it is right about all of them: it adds to seven bits of each byte, which
// cannot carry into the next, where special subtracts from eight.
func ordinary(w uint64) uint64 {
	const sevens = 0x7F * ones
	low := w & sevens
	return (((low^0x02*ones)+(0x80-0x21)*ones)&((low^backslash8)+sevens) | w) & highs
}

// gather moves the high bits of the eight bytes of w, which has no others, into
// the lowest byte: the multiplication shifts each of them to its place on top.
func gather(w uint64) uint64 { return w * 0x0002040810204081 >> 56 }

// stringEnd returns the index behind the closing quote of the string whose first
// byte is at i, or -1.
func (s *Scanner[T]) stringEnd(b T, i int) int {
	i = plainEnd(b, i)
	if uint(i) < uint(len(b)) && b[i] == '"' {
		return i + 1
	}
	return s.escapedEnd(i) + 1
}

// failed is what escapedEnd returns after a failure.
const failed = -2

// escapedEnd goes on with a string at i, where plainEnd found something other
// than its closing quote, and returns the index of that quote, or failed. Strings
// with one escape mostly have many: it looks for them block by block.
func (s *Scanner[T]) escapedEnd(i int) int {
	b := s.Data
	for i+blockSize+unicodeLen <= len(b) {
		block := b[i : i+blockSize+unicodeLen]
		next := i + blockSize
		for mask := specials(block[:blockSize]); mask != 0; {
			n := bits.TrailingZeros64(mask) % blockSize
			if block[n] != '\\' || !isSimpleEscape[block[n+1]] {
				if r := hex4(block[n : n+unicodeLen]); r < 0 || utf16.IsSurrogate(r) {
					at := i + n
					if next = s.afterSpecial(at); next <= at {
						return next
					}
					break
				}
			}
			mask &^= 3 << n // the digits of \u are nothing special
			next = i + max(blockSize, n+simpleLen)
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
// closing quote, or failed.
func (s *Scanner[T]) afterSpecial(i int) int {
	b := s.Data
	switch {
	case i >= len(b):
		s.Fail(i, faultEnd)
		return failed
	case b[i] == '"':
		return i
	case b[i] != '\\':
		s.Fail(i, faultControl)
		return failed
	case i+1 < len(b) && isSimpleEscape[b[i+1]]:
		return i + simpleLen
	}
	n, fault := unicodeEscapeLen(b[i:])
	if fault == faultSurrogate && s.Lenient {
		n, fault, s.Halved = unicodeLen, "", true
	}
	if fault != "" {
		s.Fail(i, fault)
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
func unicodeEscapeLen[T Text](b T) (n int, fault string) {
	if len(b) < simpleLen {
		return 0, faultEnd
	}
	switch r := hex4(b); {
	case r < 0:
		return 0, faultEscape
	case !utf16.IsSurrogate(r):
		return unicodeLen, ""
	case utf16.DecodeRune(r, hex4(b[unicodeLen:])) == utf8.RuneError:
		return 0, faultSurrogate
	}
	return 2 * unicodeLen, ""
}

// hex4 returns the code unit of the escape \uXXXX at the start of b, or -1.
func hex4[T Text](b T) rune {
	if len(b) < unicodeLen || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	return rune(hexValue[b[2]])<<12 | rune(hexValue[b[3]])<<8 | rune(hexValue[b[4]])<<4 | rune(hexValue[b[5]])
}

const hexDigits = "0123456789abcdef"

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

// AppendUnescaped appends the text of raw, which is what a Scanner accepted
// between two quotes, to dst.
func AppendUnescaped[T Text](dst []byte, raw T) []byte {
	for {
		i := plainEnd(raw, 0)
		dst = append(dst, raw[:i]...)
		if i == len(raw) {
			return dst
		}
		n := simpleLen
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
			n = unicodeLen
			if utf16.IsSurrogate(r) {
				if r = utf16.DecodeRune(r, hex4(raw[i+unicodeLen:])); r != utf8.RuneError {
					n = 2 * unicodeLen
				}
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, c)
		}
		raw = raw[i+n:]
	}
}
