// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import "bytes"

// Concat appends the operations of the JSON array ops to the JSON array dst and
// returns the array of both, in dst's memory where that suffices. Either may be
// empty or null. The result never shares memory with ops.
func Concat(dst, ops []byte) []byte {
	added := elements(ops)
	switch {
	case len(elements(dst)) == 0:
		dst = append(dst[:0], '[')
	case len(added) == 0:
		return dst
	default:
		dst = append(dst[:bytes.LastIndexByte(dst, ']')], ',')
	}
	dst = append(dst, added...)
	return append(dst, ']')
}

// elements returns what stands between the brackets of a JSON array, and
// nothing for null or no text.
func elements(array []byte) []byte {
	array = bytes.Trim(array, space)
	if len(array) < 2 || array[0] != '[' {
		return nil
	}
	return bytes.Trim(array[1:len(array)-1], space)
}
