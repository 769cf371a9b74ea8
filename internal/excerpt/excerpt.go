// SPDX-License-Identifier: Apache-2.0

// Package excerpt is as much of a text from outside of the process as may stand in
// a span or in a line.
package excerpt

import (
	"strings"
	"unicode/utf8"
)

// Max bounds what a request can put into one attribute, in bytes.
const Max = 256

// Of copies the beginning of borrowed bytes as valid UTF-8: one string that is
// none makes OTLP refuse the whole batch that it is in.
func Of(b []byte) string {
	n := min(len(b), Max+utf8.UTFMax) // to see whether the cut is inside a rune
	return Cut(string(b[:n]), Max)
}

// Cut returns at most n bytes of s, valid UTF-8 that ends with a whole rune.
func Cut(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "?")
}
