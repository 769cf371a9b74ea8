// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// testimony is all that an answer says about the webhooks.
type testimony struct {
	lines   []claim  // of the message
	obscure []string // lines that name nobody
	rest    []claim  // of the warnings
}

func (c *Call) testimony() testimony {
	var t testimony
	if !c.Allowed {
		for _, text := range sayings(c.Message) {
			first, rest, _ := strings.Cut(text, "\n")
			cl, ok := readLine(first)
			if !ok {
				t.obscure = append(t.obscure, text)
				continue
			}
			if rest != "" {
				cl.text += "\n" + rest
			}
			t.lines = append(t.lines, cl)
		}
	}
	for _, w := range c.Warnings {
		if cl, ok := readWarning(w); ok {
			t.rest = append(t.rest, cl)
		}
	}
	return t
}

// sayings splits the message of a denial into what is said of each webhook: its
// further lines are indented, or empty.
func sayings(message string) []string {
	var all []string
	for line := range strings.SplitSeq(message, "\n") {
		further, indented := strings.CutPrefix(line, "  ")
		if n := len(all); n > 0 && (indented || line == "") {
			all[n-1] += "\n" + further
			continue
		}
		all = append(all, line)
	}
	return all
}

// about returns what is said about a webhook that did not deny.
func (t *testimony) about(webhook string) (claim, bool) {
	return find(t.rest, webhook)
}

// denier reports whether the message names the webhook.
func (t *testimony) denier(webhook string) bool {
	_, ok := find(t.lines, webhook)
	return ok
}

// named returns all webhooks that are named.
func (t *testimony) named() []string {
	return append(names(t.lines), names(t.rest)...)
}

func find(all []claim, webhook string) (claim, bool) {
	for _, cl := range all {
		if cl.webhook == webhook {
			return cl, true
		}
	}
	return claim{}, false
}

func names(all []claim) []string {
	var some []string
	for _, cl := range all {
		some = append(some, cl.webhook)
	}
	return some
}

func ofKind(all []claim, k kind) []claim {
	return slices.DeleteFunc(slices.Clone(all), func(cl claim) bool { return cl.kind != k })
}

// Beyond these the dispatcher cuts, and what is missing proves nothing.
const (
	fullAnnotation = 1000 // bytes
	fullWarnings   = 3800 // runes
)

// cut reports whether the list under key or the warnings may be incomplete.
func (c *Call) cut(key string) bool {
	return len(c.Annotations[key]) > fullAnnotation ||
		utf8.RuneCountInString(strings.Join(c.Warnings, "")) > fullWarnings
}

// sameNames reports whether x and y hold the same names.
func sameNames(x, y []string) bool {
	x, y = slices.Clone(x), slices.Clone(y)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}
