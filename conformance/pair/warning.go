// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"slices"
	"strings"

	"github.com/admission-dispatcher/dispatcher/conformance/caller"
)

// ownWarnings begin the dispatcher's own warnings.
var ownWarnings = []string{"failed calling webhook ", "webhook \""}

func isOwn(warning string) bool {
	return slices.ContainsFunc(ownWarnings, func(own string) bool { return strings.HasPrefix(warning, own) })
}

// warnings compares what webhooks warn of.
func warnings(direct, through caller.Result) []Difference {
	was, is := slices.Sorted(slices.Values(direct.Warnings)), slices.Sorted(slices.Values(through.Warnings))
	if slices.Equal(was, is) {
		return nil
	}
	var all []Difference
	theirs := slices.DeleteFunc(slices.Clone(is), isOwn)
	if len(theirs) < len(is) {
		all = append(all, Difference{Row: FailOpen, Aspect: "warnings", Direct: was, Through: is})
	}
	if slices.Equal(was, theirs) {
		return all
	}
	d := Difference{Aspect: "warnings", Direct: was, Through: theirs}
	if a, b := plainWarnings(was), plainWarnings(theirs); slices.Equal(a, b) || tooMany(was) && subset(b, a) {
		d.Row = Warnings
	}
	return append(all, d)
}

// subset reports whether each of some is the beginning of one of all.
func subset(some, of []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool {
		return !slices.ContainsFunc(of, func(whole string) bool { return strings.HasPrefix(whole, s) })
	})
}

func plainWarnings(all []string) []string {
	out := make([]string, 0, len(all))
	for _, w := range all {
		out = append(out, plain(cut(w, maxWarningRunes)))
	}
	slices.Sort(out)
	return out
}

// tooMany tells whether row C24 drops some of them.
func tooMany(all []string) bool {
	runes := 0
	for _, w := range all {
		runes += min(len([]rune(w)), maxWarningRunes)
	}
	return len(all) > maxWarnings || runes > maxAllWarningRunes-1024
}
