// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"regexp"
	"slices"
	"strings"

	"github.com/admission-dispatcher/dispatcher/conformance/caller"
)

// ownWarning is what the dispatcher itself warns of, by webhook and cause.
var ownWarning = regexp.MustCompile(`^(?:failed calling webhook "([^"]+)" \((\w+) |webhook "([^"]+)" was skipped \((\w+)\): )`)

// warnings compares what webhooks warn of. The dispatcher's own warnings are meant
// where its audit annotations name the same webhooks and causes, as often.
func warnings(direct, through caller.Result) []Difference {
	was, is := slices.Sorted(slices.Values(direct.Warnings)), slices.Sorted(slices.Values(through.Warnings))
	var all []Difference
	theirs, own := []string{}, []string{}
	for _, text := range is {
		if m := ownWarning.FindStringSubmatch(text); m != nil {
			own = append(own, m[1]+m[3]+" ("+m[2]+m[4])
		} else {
			theirs = append(theirs, text)
		}
	}
	recorded, cut := recordedFailures(&through)
	slices.Sort(own)
	switch {
	case !cut && !slices.Equal(own, recorded):
		all = append(all, Difference{Aspect: "own warnings", Direct: recorded, Through: own})
	case len(own) > 0:
		all = append(all, Difference{Row: FailOpen, Aspect: "warnings", Direct: was, Through: is})
	}
	if slices.Equal(was, theirs) {
		return all
	}
	d := Difference{Aspect: "warnings", Direct: was, Through: theirs}
	if a, b := plainWarnings(was), plainWarnings(theirs); slices.EqualFunc(b, a, begins) || tooMany(was) && subset(b, a) {
		d.Row = Warnings
	}
	return append(all, d)
}

// recordedFailures are the webhooks that failed open or were skipped, with the cause,
// as the dispatcher's audit annotations name them.
func recordedFailures(through *caller.Result) (all []string, cut bool) {
	failedOpen, cutOpen := entries(through, "failed-open")
	skipped, cutSkipped := entries(through, "skipped")
	for _, entry := range append(failedOpen, skipped...) {
		entry, _, _ = strings.Cut(entry, ",")
		all = append(all, strings.TrimSuffix(entry, ")"))
	}
	slices.Sort(all)
	return all, cutOpen || cutSkipped
}

// subset reports whether each of some is the beginning of one of all.
func subset(some, of []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool {
		return !slices.ContainsFunc(of, func(whole string) bool { return begins(s, whole) })
	})
}

// cutMark ends a warning that was cut, at a word.
const cutMark = "..." // as plain has it

// begins reports whether a warning of the dispatcher is the whole, or as much of it as fits.
func begins(s, whole string) bool {
	head, wasCut := strings.CutSuffix(s, cutMark)
	return s == whole || wasCut && strings.HasPrefix(whole, head)
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
