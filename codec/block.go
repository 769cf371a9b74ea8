// SPDX-License-Identifier: Apache-2.0

package codec

import "encoding/binary"

// blockSize is the number of bytes that specials looks at.
const blockSize = 64

// specials has a bit for each byte of block that is a quote, a backslash or a
// control character. Written out: with a loop, decoding text with many escapes took
// 14 % longer.
func specials(block *[blockSize]byte) uint64 {
	return gather(exactSpecial(binary.LittleEndian.Uint64(block[0:8]))) |
		gather(exactSpecial(binary.LittleEndian.Uint64(block[8:16])))<<8 |
		gather(exactSpecial(binary.LittleEndian.Uint64(block[16:24])))<<16 |
		gather(exactSpecial(binary.LittleEndian.Uint64(block[24:32])))<<24 |
		gather(exactSpecial(binary.LittleEndian.Uint64(block[32:40])))<<32 |
		gather(exactSpecial(binary.LittleEndian.Uint64(block[40:48])))<<40 |
		gather(exactSpecial(binary.LittleEndian.Uint64(block[48:56])))<<48 |
		gather(exactSpecial(binary.LittleEndian.Uint64(block[56:64])))<<56
}

// exactSpecial is special without the doubt: it adds to seven bits of each byte,
// which cannot carry into the next, where special subtracts from eight.
func exactSpecial(w uint64) uint64 {
	const sevens = 0x7F * ones
	notControlOrQuote := (w^0x02*ones)&sevens + (0x80-0x21)*ones
	notBackslash := (w^backslash8)&sevens + sevens
	return ^(notControlOrQuote&notBackslash | w) & highs
}

// gather moves the high bits of the eight bytes of w into the lowest byte.
func gather(w uint64) uint64 { return (w >> 7) * 0x0102040810204080 >> 56 }
