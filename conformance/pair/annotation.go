// SPDX-License-Identifier: Apache-2.0

package pair

import (
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
	if dropped, _ := entries(&through, "dropped-annotations"); len(dropped) > 0 {
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

// failOpen compares which webhooks failed open, as often as they did. NotConvertible
// is the cause only of those for which it can be. What stands in for such a one is called
// again in a reinvocation, where the dispatcher, which has called nobody, says it once.
func (p *Pair) failOpen(direct *Oracle) []Difference {
	was, again, is := map[string]int{}, map[string]int{}, map[string]int{}
	for key, value := range direct.Annotations {
		if !strings.HasPrefix(key, "failed-open.") {
			continue
		}
		was[value]++
		if strings.Contains(key, "/round_1_") && direct.notConvertible(value) {
			again[value]++
		}
	}
	list, cut := entries(&p.Through, "failed-open")
	different := false
	for _, entry := range list {
		name, cause, _ := strings.Cut(entry, " (")
		is[name]++
		different = different || is[name] > was[name] || strings.HasPrefix(cause, causeNotConvertible+",") && !direct.notConvertible(name)
	}
	for name, n := range was {
		different = different || !cut && is[name] < n-again[name]
	}
	if !different {
		return nil
	}
	return []Difference{{Aspect: "failed open", Direct: was, Through: list}}
}
