// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
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
		n, fault, s.halved = len(`\uXXXX`), "", true
	}
	if fault != "" {
		s.fail(i, fault)
		return failed
	}
	return i + n
}
