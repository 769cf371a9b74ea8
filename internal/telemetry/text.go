// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"strings"
	"unicode/utf8"
)

// maxAttribute bounds what a request can put into one attribute, in bytes.
const maxAttribute = 256

// short copies the beginning of borrowed bytes as valid UTF-8: one string that is
// none makes OTLP refuse the whole batch that it is in.
func short(b []byte) string {
	n := min(len(b), maxAttribute+utf8.UTFMax) // to see whether the cut is inside a rune
	return cutTo(string(b[:n]), maxAttribute)
}

// cutTo returns at most n bytes of s, valid UTF-8 that ends with a whole rune.
func cutTo(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "?")
}
