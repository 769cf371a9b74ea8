// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import "math/bits"

// plainLen returns how many bytes of s stand before the first quote, backslash or
// control character. It looks at eight bytes at once (Hacker's Delight, "find the
// first zero byte"): documents mostly are strings.
func plainLen(s string) int {
	n := 0
	for ; n+8 <= len(s); n += 8 {
		if m := special(word(s[n : n+8])); m != 0 {
			return n + bits.TrailingZeros64(m)/8
		}
	}
	for n < len(s) && s[n] >= ' ' && s[n] != '"' && s[n] != '\\' {
		n++
	}
	return n
}

// special has the high bit of each byte of w set that is a quote, a backslash or a
// control character, up to the first one; what it has above that means nothing.
func special(w uint64) uint64 {
	const ones = 0x0101010101010101
	// Flipping bit 1 turns the quote (0x22) into 0x20 and keeps the control
	// characters below 0x20: one comparison with 0x21 finds both.
	return (((w ^ 0x02*ones) - 0x21*ones) | ((w ^ '\\'*ones) - ones)) & ^w & (0x80 * ones)
}

// word is the first eight bytes of s. The compiler makes one load of it.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
