// SPDX-License-Identifier: Apache-2.0

package codec

import "encoding/binary"

// blockSize is the number of bytes that specials looks at.
const blockSize = 64

// specials has a bit for each byte of block that is a quote, a backslash or a
// control character. Written out: with a loop, decoding text with many escapes took
// 14 % longer.
func specials(block *[blockSize]byte) uint64 {
	return ^(gather(ordinary(binary.LittleEndian.Uint64(block[0:8]))) |
		gather(ordinary(binary.LittleEndian.Uint64(block[8:16])))<<8 |
		gather(ordinary(binary.LittleEndian.Uint64(block[16:24])))<<16 |
		gather(ordinary(binary.LittleEndian.Uint64(block[24:32])))<<24 |
		gather(ordinary(binary.LittleEndian.Uint64(block[32:40])))<<32 |
		gather(ordinary(binary.LittleEndian.Uint64(block[40:48])))<<40 |
		gather(ordinary(binary.LittleEndian.Uint64(block[48:56])))<<48 |
		gather(ordinary(binary.LittleEndian.Uint64(block[56:64])))<<56)
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
