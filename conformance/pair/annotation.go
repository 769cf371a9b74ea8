// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/admission-dispatcher/dispatcher/conformance/caller"
)

const ownAnnotations = "dispatcher.dev."

// annotations compares the audit annotations of webhooks, which have the name of
// ours before their own.
func annotations(direct, through caller.Result) []Difference {
	was, is := theirs(direct.Annotations), passedOn(through.Annotations)
	byRow := map[string]*Difference{}
	differ := func(row, key string) {
		if byRow[row] == nil {
			byRow[row] = &Difference{Row: row, Aspect: "annotations", Direct: map[string]string{}, Through: map[string][]string{}}
		}
		if value, ok := was[key]; ok {
			byRow[row].Direct.(map[string]string)[key] = value
		}
		if values, ok := is[key]; ok {
			byRow[row].Through.(map[string][]string)[key] = values
		}
	}
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if !slices.Contains(is[key], was[key]) {
			differ(annotationRow(key, was[key], is, through), key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if _, ok := was[key]; !ok && !known(key, was) {
			differ("", key)
		}
	}
	var all []Difference
	for _, row := range slices.Sorted(maps.Keys(byRow)) {
		all = append(all, *byRow[row])
	}
	return all
}

// theirs are the annotations of webhooks, without those of the plugin itself.
func theirs(all map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range all {
		if webhook, name, _ := strings.Cut(key, "/"); !strings.HasSuffix(webhook, "webhook.admission.k8s.io") {
			out[webhook+"."+name] = value
		}
	}
	return out
}

// passedOn are the values of each annotation of webhooks. There may be two: one
// from each phase, where directly the later one replaces the earlier.
func passedOn(all map[string]string) map[string][]string {
	out := map[string][]string{}
	for key, value := range all {
		webhook, key, _ := strings.Cut(key, "/")
		if !strings.HasSuffix(webhook, "webhook.admission.k8s.io") && !strings.HasPrefix(key, ownAnnotations) {
			out[key] = append(out[key], value)
		}
	}
	return out
}

// annotationRow is C25 where the annotation is there in a form that fits, or was
// dropped visibly.
func annotationRow(key, value string, is map[string][]string, through caller.Result) string {
	for other, values := range is {
		if sameHead(key, other) && slices.ContainsFunc(values, func(got string) bool { return sameValue(value, got) }) {
			return Annotations
		}
	}
	if len(entries(through, "dropped-annotations")) > 0 {
		return Annotations
	}
	return ""
}

// known reports whether an annotation through the dispatcher is one of those
// directly. The second webhook of a name replaces the first one's annotations
// directly, and has a key of its own here.
func known(key string, was map[string]string) bool {
	for other := range was {
		if sameHead(key, other) {
			return true
		}
	}
	return false
}

// sameHead reports whether two keys are the same but for a hashed tail.
func sameHead(a, b string) bool {
	const head = 50
	return a[:min(len(a), head)] == b[:min(len(b), head)] || hashed.ReplaceAllString(a, "") == b || hashed.ReplaceAllString(b, "") == a
}

var hashed = regexp.MustCompile(`\.[0-9a-f]{8}$`)

func sameValue(a, b string) bool {
	return plain(cut(a, maxAnnotationValue)) == plain(cut(b, maxAnnotationValue))
}

// failOpen compares the names of webhooks that failed open.
func failOpen(direct, through caller.Result) []Difference {
	was, is := map[string]bool{}, map[string]bool{}
	for key, value := range direct.Annotations {
		if strings.HasPrefix(key, "failed-open.") {
			was[value] = true
		}
	}
	for _, entry := range entries(through, "failed-open") {
		name, _, _ := strings.Cut(entry, " (")
		is[name] = true
	}
	if maps.Equal(was, is) {
		return nil
	}
	return []Difference{{Aspect: "failed open", Direct: was, Through: is}}
}

var patched = regexp.MustCompile(`^patch\.webhook\.admission\.k8s\.io/round_(\d)_`)

// patches compares how many webhooks patched, by round.
func patches(direct, through caller.Result) []Difference {
	was, is := map[string]int{}, map[string]int{}
	for key := range direct.Annotations {
		if m := patched.FindStringSubmatch(key); m != nil {
			was[m[1]]++
		}
	}
	size := 0
	for _, entry := range entries(through, "mutated") {
		size += len(entry) + len("; ")
		_, round, _ := strings.Cut(entry, "round ")
		is[strings.TrimSuffix(round, ")")]++
	}
	if size >= maxAnnotationValue || maps.Equal(was, is) { // a list that is too long is cut
		return nil
	}
	row := ""
	if was["0"] == is["0"] && was["1"] < is["1"] {
		row = Again
	}
	return []Difference{{Row: row, Aspect: "patches by round", Direct: fmt.Sprint(was), Through: fmt.Sprint(is)}}
}

// entries are those of one of the dispatcher's own annotations.
func entries(through caller.Result, name string) []string {
	var all []string
	for key, value := range through.Annotations {
		if strings.HasSuffix(key, "/"+ownAnnotations+name) {
			all = append(all, strings.Split(value, "; ")...)
		}
	}
	return all
}
