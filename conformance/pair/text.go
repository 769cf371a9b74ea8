// SPDX-License-Identifier: Apache-2.0

package pair

import "strings"

// Limits of rows C22 to C25.
const (
	maxRetryAfter      = 30
	maxMessageRunes    = 4096
	maxWarnings        = 16
	maxWarningRunes    = 256
	maxAllWarningRunes = 4096
	maxAnnotationKey   = 63
	maxAnnotationValue = 1024
)

// plain is text with all that row C23 replaces left out.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if replaced(r) || r == '\uFFFD' || r == ' ' {
			return -1
		}
		return r
	}, text)
}

// replaced are control characters, and those that turn the direction of text.
func replaced(r rune) bool {
	return r < 0x20 || r >= 0x7F && r < 0xA0 || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 ||
		r == 0x200E || r == 0x200F || r == 0x061C || r == 0x2028 || r == 0x2029
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// shown is how the dispatcher writes a webhook's denial of several lines: all but
// the first are indented, so that none passes for the denial of another.
func shown(text string) string {
	lines := strings.Split(strings.TrimRight(lineEnds.Replace(text), "\n"), "\n")
	for i := range lines[1:] {
		if lines[i+1] != "" {
			lines[i+1] = "  " + lines[i+1]
		}
	}
	return strings.Join(lines, "\n")
}

// altered reports whether row C23 changes more of text than the ends of lines.
func altered(text string) bool {
	return strings.ContainsFunc(lineEnds.Replace(text), func(r rune) bool { return r != '\n' && replaced(r) }) ||
		len([]rune(text)) > maxMessageRunes
}

// cut leaves as much of text as certainly fits into so many runes.
func cut(text string, runes int) string {
	const margin = 100 // what was left out may count
	all := []rune(text)
	return string(all[:min(len(all), runes-margin)])
}
