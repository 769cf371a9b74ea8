// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// outcome is what a client sees of a request, but for what each cluster has of its own.
type outcome struct {
	Code     int
	Reason   string
	Message  string
	Warnings []string
	Object   map[string]any

	by   string   // the plugin that has denied
	more []string // further denials, which no API server tells
}

// outcome translates what a cluster behind the dispatcher answers into the words of one
// whose controllers are its own: a webhook's denial has a prefix, and so has a plugin's.
// All denials are told, a line each; an API server tells the first.
func (a answer) outcome() outcome {
	o := outcome{Code: a.code, Object: a.object, Warnings: a.warnings}
	if o.Object != nil {
		unstructured.RemoveNestedField(o.Object, "metadata", "managedFields")
		removeTimes(o.Object)
	}
	if a.status == nil {
		return o
	}
	o.Object = nil
	denials := denialsOf(uuid.ReplaceAllString(a.status.Message, "UUID"))
	o.Reason, o.Message, o.more = string(a.status.Reason), denials[0], denials[1:]
	if name, text, ok := strings.Cut(strings.TrimPrefix(o.Message, `admission plugin "`), `" denied the request: `); ok {
		o.by, o.Message = name, text
	}
	return o
}

// removeTimes removes the times of conditions.
func removeTimes(value any) {
	switch value := value.(type) {
	case map[string]any:
		delete(value, "lastTransitionTime")
		delete(value, "lastUpdateTime")
		for _, v := range value {
			removeTimes(v)
		}
	case []any:
		for _, v := range value {
			removeTimes(v)
		}
	}
}

// controllerDifference is one that docs/plugins.md has a row for.
type controllerDifference struct {
	row string // which this is part of
	// ours returns what the dispatcher's cluster must answer, given what both did; false:
	// the row is not about this.
	ours func(controller string, theirs, ours outcome) (outcome, bool)
}

var controllerDifferences = []controllerDifference{
	{"code 403, where kube-apiserver's has 500", noStatus},
	{"kube-apiserver has no order there", ofLimits},
	{"quantities up to 9223372036854775807", tooLarge},
	{"one warning says that they were not checked", unchecked},
	{"of several labels that conflict the first by name is told", conflicting},
	{"The API server tells what it finds invalid itself in no order", invalid},
	{"The warnings of plugins that come after one that denies are told", warnedBehind},
	{"A pod that a webhook has changed is defaulted again", defaultedAgain},
}

// noStatus: an error of a controller that is no status.
func noStatus(_ string, theirs, ours outcome) (outcome, bool) {
	plain := theirs.Code == http.StatusInternalServerError && theirs.Reason == ""
	theirs.Code, theirs.Reason = http.StatusForbidden, "Forbidden"
	return theirs, plain && slices.Contains([]string{"AlwaysPullImages", "PodNodeSelector", "PodTolerationRestriction", "RuntimeClass"}, ours.by)
}

// ofLimits: violations of limits are told in the order of a map.
func ofLimits(_ string, theirs, ours outcome) (outcome, bool) {
	const forbidden = " is forbidden: "
	same := slices.Equal(violations(theirs.Message, forbidden), violations(ours.Message, forbidden))
	theirs.Message = ours.Message
	return theirs, same && ours.by == "LimitRanger"
}

// violations are what a message lists after its beginning, sorted.
func violations(message, beginning string) []string {
	_, list, _ := strings.Cut(message, beginning)
	all := strings.Split(strings.Trim(list, "[]"), ", ")
	slices.Sort(all)
	return all
}

func tooLarge(_ string, _, ours outcome) (outcome, bool) {
	return ours, ours.by == "LimitRanger" && strings.Contains(ours.Message, "a quantity is too large to be compared with the limits")
}

func unchecked(controller string, theirs, ours outcome) (outcome, bool) {
	checked := slices.DeleteFunc(slices.Clone(ours.Warnings), func(w string) bool { return strings.Contains(w, "were not checked") })
	same := slices.Equal(checked, theirs.Warnings)
	theirs.Warnings = ours.Warnings
	return theirs, same && controller == "PodSecurity"
}

func conflicting(_ string, theirs, ours outcome) (outcome, bool) {
	const conflict = "conflict: runtimeClass.scheduling.nodeSelector["
	a, _, first := strings.Cut(theirs.Message, conflict)
	b, _, second := strings.Cut(ours.Message, conflict)
	theirs.Message = ours.Message
	return theirs, first && second && a == b
}

// invalid: the API server refuses the object itself.
func invalid(_ string, theirs, ours outcome) (outcome, bool) {
	const found = " is invalid: "
	same := slices.Equal(violations(theirs.Message, found), violations(ours.Message, found))
	theirs.Message = ours.Message
	return theirs, same && ours.by == "" && ours.Code == http.StatusUnprocessableEntity
}

// warnedBehind: who comes after the first denial warns, too.
func warnedBehind(_ string, theirs, ours outcome) (outcome, bool) {
	told := theirs.Warnings
	theirs.Warnings = ours.Warnings
	return theirs, ours.by != "" && ours.Code >= http.StatusBadRequest && len(remaining(ours.Warnings, told)) == len(ours.Warnings)-len(told)
}

// defaultedAgain: the limits of containers on huge pages become the pod's.
func defaultedAgain(_ string, theirs, ours outcome) (outcome, bool) {
	const found = " is invalid: "
	a, b := violations(theirs.Message, found), violations(ours.Message, found)
	more := remaining(b, a)
	pages := len(more) > 0 && len(more) == len(b)-len(a) && strings.Contains(strings.Join(more, ", "), "hugepages")
	theirs.Message = ours.Message
	return theirs, pages && ours.by == "" && theirs.Code == http.StatusUnprocessableEntity
}

// remaining is what all has beyond some, each as often as it is more often there.
func remaining(all, some []string) []string {
	rest := slices.Clone(all)
	for _, one := range some {
		if i := slices.Index(rest, one); i >= 0 {
			rest = slices.Delete(rest, i, i+1)
		}
	}
	return rest
}

// explainedBy returns the row that explains how two outcomes differ: "" if they do not,
// and false if none does.
func explainedBy(controller string, theirs, ours outcome) (string, bool) {
	if theirs.text() == ours.text() {
		return "", true
	}
	for _, d := range controllerDifferences {
		if want, ok := d.ours(controller, theirs, ours); ok && want.text() == ours.text() {
			return d.row, true
		}
	}
	return "", false
}

// Every difference of controllers that is granted here is documented.
func TestDifferencesOfControllersAreRows(t *testing.T) {
	page, err := os.ReadFile("../docs/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range controllerDifferences {
		if !strings.Contains(string(page), d.row) {
			t.Errorf("docs/plugins.md does not say %q", d.row)
		}
	}
}

// What differs by more than a row says is not explained by it.
func TestDifferencesOfControllersExplainNoMore(t *testing.T) {
	denied := outcome{Code: http.StatusForbidden, Message: "no", by: "LimitRanger", Warnings: []string{"a", "b"}}
	invalid := outcome{Code: http.StatusUnprocessableEntity, Message: "pod is invalid: [a: bad, b: bad, spec.resources.limits[hugepages-2Mi]: bad]"}
	with := func(o outcome, change func(*outcome)) outcome {
		change(&o)
		return o
	}
	for name, row := range map[string]struct {
		theirs, ours outcome
		explained    bool
	}{
		"a warning more":              {with(denied, func(o *outcome) { o.Warnings = []string{"b"} }), denied, true},
		"a warning less":              {denied, with(denied, func(o *outcome) { o.Warnings = nil }), false},
		"another warning":             {with(denied, func(o *outcome) { o.Warnings = []string{"c"} }), denied, false},
		"a warning of what is stored": {outcome{Code: http.StatusOK}, outcome{Code: http.StatusOK, Warnings: []string{"a"}}, false},
		"another denial":              {with(denied, func(o *outcome) { o.Message, o.Warnings = "other", nil }), denied, false},
		"more about huge pages":       {with(invalid, func(o *outcome) { o.Message = "pod is invalid: [b: bad, a: bad]" }), invalid, true},
		"less about huge pages":       {invalid, with(invalid, func(o *outcome) { o.Message = "pod is invalid: [b: bad, a: bad]" }), false},
		"more about something else":   {with(invalid, func(o *outcome) { o.Message = "pod is invalid: [a: bad, spec.resources.limits[hugepages-2Mi]: bad]" }), invalid, false},
		"invalid here alone":          {outcome{Code: http.StatusOK}, invalid, false},
	} {
		if _, ok := explainedBy("Priority", row.theirs, row.ours); ok != row.explained {
			t.Errorf("%s: explained %t", name, ok)
		}
	}
}
