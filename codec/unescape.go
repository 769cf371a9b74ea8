// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

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
