// SPDX-License-Identifier: Apache-2.0

package dispatcher

import "unicode/utf8"

// The caller passes on 4,096 runes of warnings together and cuts each to 256
// once that is exceeded; so nothing of ours may be among what is cut.
const (
	maxWarningRunes  = 256
	maxWarningsRunes = 4096
)

// warningsOf returns our own warnings, then the webhooks', within the caller's
// limits.
func warningsOf(outcomes []Outcome) []string {
	var all []string
	left := maxWarningsRunes
	add := func(text string) {
		if text == "" || left == 0 {
			return
		}
		text = cutRunes(text, min(maxWarningRunes, left))
		left -= utf8.RuneCountInString(text)
		all = append(all, text)
	}
	for i := range outcomes {
		add(outcomes[i].warning())
	}
	for i := range outcomes {
		for _, w := range outcomes[i].Response.Warnings {
			add(w)
		}
	}
	return all
}

// cutRunes returns the first n runes of s.
func cutRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
