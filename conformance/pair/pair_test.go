// SPDX-License-Identifier: Apache-2.0

package pair_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/conformance/caller"
	"github.com/admission-dispatcher/dispatcher/conformance/pair"
)

// denied is a denial by a validating webhook.
func denied(code int32, message string) caller.Result {
	return caller.Result{Phase: caller.Validating, Status: metav1.Status{Code: code, Message: message}}
}

// dispatched is a denial of the dispatcher: of each cause its type, the webhook and
// the message.
func dispatched(code int32, causes ...[3]string) caller.Result {
	r := denied(code, "")
	r.Status.Details = &metav1.StatusDetails{}
	var lines []string
	for _, c := range causes {
		lines = append(lines, c[2])
		r.Status.Details.Causes = append(r.Status.Details.Causes, metav1.StatusCause{Type: metav1.CauseType(c[0]), Field: c[1], Message: c[2]})
	}
	r.Status.Message = `admission webhook "validate" denied the request: ` + strings.Join(lines, "\n")
	return r
}

func rejection(webhook, message string) string {
	return fmt.Sprintf("admission webhook %q denied the request: %s", webhook, message)
}

func failure(webhook string) string {
	return fmt.Sprintf("Internal error occurred: failed calling webhook %q: because", webhook)
}

func allowed(change func(*caller.Result)) caller.Result {
	r := caller.Result{
		Allowed:     true,
		Phase:       caller.Validating,
		Object:      map[string]any{"a": "b"},
		Annotations: map[string]string{"d.example.com/a.example.com.verdict": "ok"},
		Warnings:    []string{"old"},
	}
	change(&r)
	return r
}

func nothing(*caller.Result) {}

// played has the API server decide with each webhook alone as well: all are of the
// configuration c.
func played(p pair.Pair, alone map[string]caller.Result) *pair.Pair {
	p.Direct.Alone = func() ([]pair.Alone, error) {
		var all []pair.Alone
		for _, name := range []string{"a", "b", "z"} {
			if r, ok := alone[name]; ok {
				all = append(all, pair.Alone{Configuration: "c", Webhook: name, Result: r})
			}
		}
		return all, nil
	}
	return &p
}

func check(t *testing.T, p *pair.Pair, rows []string) {
	t.Helper()
	got, err := p.Differences()
	if err != nil || len(got) != len(rows) {
		t.Fatalf("%v, %v, want rows %q", got, err, rows)
	}
	for i, d := range got {
		if d.Row != rows[i] {
			t.Errorf("%v has row %q, want %q", d, d.Row, rows[i])
		}
	}
}

// What cannot be converted fails open once through the dispatcher, which calls nobody for it,
// and what stands in for it directly once more in a reinvocation.
func TestFailedOpenInAReinvocation(t *testing.T) {
	for _, row := range []struct {
		name, again string
		convertible bool
		rows        []string
	}{
		{"not convertible", "round_1_index_0", false, []string{pair.FailOpen}},
		{"another one of the name", "round_0_index_1", false, []string{pair.FailOpen, ""}},
		{"convertible", "round_1_index_0", true, []string{pair.FailOpen, ""}},
	} {
		t.Run(row.name, func(t *testing.T) {
			const prefix = "failed-open.mutation.webhook.admission.k8s.io/"
			cause := "NotConvertible"
			if row.convertible {
				cause = "Timeout"
			}
			p := pair.Pair{
				Direct: pair.Oracle{
					Result: allowed(func(r *caller.Result) {
						r.Annotations = map[string]string{"a.example.com/verdict": "ok", prefix + "round_0_index_0": "x", prefix + row.again: "x"}
					}),
				},
				Through: allowed(func(r *caller.Result) {
					r.Annotations["d.example.com/dispatcher.dev.failed-open"] = "x (" + cause + ", failurePolicy Ignore)"
					r.Warnings = append(r.Warnings, `failed calling webhook "x" (`+cause+` after 0s), ignored`)
				}),
			}
			if !row.convertible {
				p.Direct.NotConvertible = map[string]bool{"c/x": true}
			}
			check(t, played(p, nil), row.rows)
		})
	}
}

// TestDifferences shows that the comparison is not blind.
func TestDifferences(t *testing.T) {
	direct := allowed(func(r *caller.Result) { r.Annotations = map[string]string{"a.example.com/verdict": "ok"} })
	failedOpen := func(text string) func(*caller.Result) {
		return func(r *caller.Result) { r.Annotations["d.example.com/dispatcher.dev.failed-open"] = text }
	}
	both := func(all ...func(*caller.Result)) func(*caller.Result) {
		return func(r *caller.Result) {
			for _, change := range all {
				change(r)
			}
		}
	}
	warned := func(text string) func(*caller.Result) {
		return func(r *caller.Result) { r.Warnings = append(r.Warnings, text) }
	}
	directly := allowed(func(r *caller.Result) {
		r.Annotations = map[string]string{"a.example.com/verdict": "ok", "failed-open.validating.webhook.admission.k8s.io/round_0_index_0": "x"}
	})
	tests := []struct {
		name            string
		direct, through caller.Result
		rows            []string // "" is a difference that is not meant
	}{
		{"the same", direct, allowed(nothing), nil},
		{"a wrong allow", denied(403, rejection("a", "no")), allowed(nothing), []string{""}},
		{"a wrong denial", direct, dispatched(403, [3]string{"Denied", "a", rejection("a", "no")}), []string{""}},
		{"another object", direct, allowed(func(r *caller.Result) { r.Object = map[string]any{"a": "c"} }), []string{""}},
		{"a warning is lost", direct, allowed(func(r *caller.Result) { r.Warnings = nil }), []string{""}},
		{"an annotation is lost", direct, allowed(func(r *caller.Result) { r.Annotations = nil }), []string{""}},
		{"one key in both phases", allowed(func(r *caller.Result) { r.Annotations = map[string]string{"a.example.com/verdict": "later"} }), allowed(func(r *caller.Result) {
			r.Annotations = map[string]string{"m.example.com/a.example.com.verdict": "earlier", "v.example.com/a.example.com.verdict": "later"}
		}), nil},
		{"an annotation nobody gave", direct, allowed(func(r *caller.Result) { r.Annotations["d.example.com/b.example.com.x"] = "y" }), []string{""}},
		{"failed open as directly", directly, allowed(both(failedOpen("x (Timeout, failurePolicy Ignore)"), warned(`failed calling webhook "x" (Timeout after 1s), ignored`))), []string{pair.FailOpen}},
		{"failed open alone", direct, allowed(both(failedOpen("x (Timeout, failurePolicy Ignore)"), warned(`failed calling webhook "x" (Timeout after 1s), ignored`))), []string{pair.FailOpen, ""}},
		{"another one failed open", directly, allowed(both(failedOpen("y (Timeout, failurePolicy Ignore)"), warned(`failed calling webhook "y" (Timeout after 1s), ignored`))), []string{pair.FailOpen, ""}},
		{"failed open without a warning", directly, allowed(failedOpen("x (Timeout, failurePolicy Ignore)")), []string{""}},
		{"failed open with a warning of another cause", directly, allowed(both(failedOpen("x (Timeout, failurePolicy Ignore)"), warned(`failed calling webhook "x" (TLS after 1s), ignored`))), []string{""}},
		{"failed open, not convertible", directly, allowed(both(failedOpen("x (NotConvertible, failurePolicy Ignore)"), warned(`failed calling webhook "x" (NotConvertible after 0s), ignored`))), []string{pair.FailOpen, ""}},
		{"a warning that nothing explains", direct, allowed(warned(`failed calling webhook "x" (Timeout after 1s), ignored`)), []string{""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			check(t, played(pair.Pair{Direct: pair.Oracle{Result: tt.direct}, Through: tt.through}, nil), tt.rows)
		})
	}
}

// TestTexts is about one denial, of the webhook a.
func TestTexts(t *testing.T) {
	no := rejection("a", "no")
	tests := []struct {
		name   string
		direct caller.Result
		code   int32
		cause  [3]string
		rows   []string
	}{
		{"the same", denied(403, no), 403, [3]string{"Denied", "a", no}, nil},
		{"another code", denied(403, no), 400, [3]string{"Denied", "a", no}, []string{""}},
		{"another text", denied(403, no), 403, [3]string{"Denied", "a", rejection("a", "yes")}, []string{""}},
		{"another webhook", denied(403, no), 403, [3]string{"Denied", "b", no}, []string{""}},
		{"another cause", denied(403, no), 403, [3]string{"BadAnswer", "a", no}, []string{""}},
		{"two lines", denied(403, no+"\nand no"), 403, [3]string{"Denied", "a", no + "\n  and no"}, []string{pair.Texts}},
		{"two lines, not indented", denied(403, no+"\r\nand no"), 403, [3]string{"Denied", "a", no + "\nand no"}, []string{""}},
		{"two lines in one", denied(403, no+"\nand no"), 403, [3]string{"Denied", "a", no + " and no"}, []string{""}},
		{"two lines, coloured", denied(403, no+"\n\x1b[31mand no"), 403, [3]string{"Denied", "a", no + "\n   [31mand no"}, []string{pair.Texts}},
		{"a timeout", denied(500, failure("a")), 504, [3]string{"Timeout", "a", failure("a")}, []string{pair.Causes}},
		{"a failure with the code of a denial", denied(500, failure("a")), 403, [3]string{"Timeout", "a", failure("a")}, []string{""}},
		{"a failure to convert what can be converted", denied(500, failure("a")), 500, [3]string{"NotConvertible", "a", failure("a")}, []string{""}},
		{"a failed condition", denied(403, "no such key"), 403, [3]string{"MatchError", "a", "it cannot be decided"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := pair.Pair{Direct: pair.Oracle{Result: tt.direct}, Through: dispatched(tt.code, tt.cause)}
			check(t, played(p, map[string]caller.Result{"a": tt.direct}), tt.rows)
		})
	}
}

// TestDenials is about which of several denials are told: the webhooks a and z deny,
// and b fails.
func TestDenials(t *testing.T) {
	var (
		alone = map[string]caller.Result{
			"a": denied(403, rejection("a", "no")),
			"b": denied(500, failure("b")),
			"z": denied(403, rejection("z", "never")),
		}
		a             = [3]string{"Denied", "a", rejection("a", "no")}
		b             = [3]string{"HTTPStatus", "b", failure("b")}
		z             = [3]string{"Denied", "z", rejection("z", "never")}
		unconvertible = [3]string{"NotConvertible", "b", failure("b")}
		dryRun        = `admission webhook "z" does not support dry run`
	)
	tests := []struct {
		name    string
		through caller.Result
		change  func(*pair.Pair)
		rows    []string
	}{
		{"all", dispatched(403, a, z, b), nil, []string{pair.Merged}},
		{"out of order", dispatched(403, z, a, b), nil, []string{pair.Merged, "", ""}},
		{"one is swallowed", dispatched(403, a, b), nil, []string{pair.Merged, ""}},
		{"one that nobody gave", dispatched(403, a, z, b, b), nil, []string{pair.Merged, ""}},
		{"nobody is called if one needs no call", dispatched(500, unconvertible), func(p *pair.Pair) {
			p.Direct.NotConvertible = map[string]bool{"c/b": true}
		}, []string{pair.FirstRefuse}},
		{"one is swallowed because another says that it needs no call", dispatched(500, unconvertible), nil, []string{pair.Merged, ""}},
		{"that of another configuration needs no call", dispatched(500, unconvertible), func(p *pair.Pair) {
			p.Direct.NotConvertible = map[string]bool{"d/b": true}
		}, []string{pair.Merged, ""}},
		{"called although one needs no call", dispatched(403, a, z, b), func(p *pair.Pair) {
			p.Direct.NotConvertible = map[string]bool{"c/b": true}
		}, []string{pair.FirstRefuse, ""}},
		{"an unknown namespace comes before a conversion", dispatched(404, [3]string{"MatchError", "b", "namespace not found"}), func(p *pair.Pair) {
			p.Direct.NotConvertible = map[string]bool{"c/b": true}
			alone["b"] = denied(404, "namespace not found")
		}, []string{pair.FirstRefuse}},
		{"of two that need no call both are told", dispatched(400, [3]string{"DryRun", "z", dryRun}), func(p *pair.Pair) {
			p.Direct.NotConvertible = map[string]bool{"c/b": true}
			alone["z"] = denied(400, dryRun)
		}, []string{pair.FirstRefuse, pair.Merged, ""}},
		{"of one path", dispatched(403, a, b), func(p *pair.Pair) {
			p.Considers = func(entry, configuration, webhook string) bool {
				return entry == "validate" && configuration == "c" && webhook != "z"
			}
		}, []string{pair.Paths, pair.Merged}},
		{"one of the answering path is swallowed", dispatched(403, a), func(p *pair.Pair) {
			p.Considers = func(_, _, webhook string) bool { return webhook != "z" }
		}, []string{pair.Paths, pair.Merged, ""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			alone["b"], alone["z"] = denied(500, failure("b")), denied(403, rejection("z", "never"))
			p := pair.Pair{Direct: pair.Oracle{Result: alone["a"]}, Through: tt.through}
			if tt.change != nil {
				tt.change(&p)
			}
			check(t, played(p, alone), tt.rows)
		})
	}
}

// TestPatches is about who patched in which round. Directly, m/a adds a label in the
// first round and m/b replaces it by itself.
func TestPatches(t *testing.T) {
	direct := allowed(func(r *caller.Result) {
		r.Annotations = map[string]string{
			"a.example.com/verdict":                             "ok",
			"patch.webhook.admission.k8s.io/round_0_index_0":    `{"configuration":"here-m","webhook":"a","patch":[{},{}],"patchType":"JSONPatch"}`,
			"patch.webhook.admission.k8s.io/round_0_index_1":    `{"configuration":"here-m","webhook":"b","patch":[{}],"patchType":"JSONPatch"}`,
			"mutation.webhook.admission.k8s.io/round_0_index_0": `{"configuration":"here-m","webhook":"a","mutated":true}`,
			"mutation.webhook.admission.k8s.io/round_0_index_1": `{"configuration":"here-m","webhook":"b","mutated":false}`,
			"mutation.webhook.admission.k8s.io/round_0_index_2": `{"configuration":"here-m","webhook":"c","mutated":false}`,
		}
	})
	const first = "there-m/a (2 operations, round 0); there-m/b (1 operations, round 0)"
	for _, tt := range []struct {
		name, mutated string
		rows          []string
	}{
		{"the same", first, nil},
		{"another webhook", "there-m/c (2 operations, round 0); there-m/b (1 operations, round 0)", []string{""}},
		{"two webhooks swapped", "there-m/b (2 operations, round 0); there-m/a (1 operations, round 0)", []string{""}},
		{"another configuration", "there-n/a (2 operations, round 0); there-m/b (1 operations, round 0)", []string{""}},
		{"another round", "there-m/a (2 operations, round 0); there-m/b (1 operations, round 1)", []string{""}},
		{"none", "", []string{""}},
		{"again because of b", first + "; there-m/a (2 operations, round 1)", []string{pair.Again}},
		{"again because of itself", first + "; there-m/b (1 operations, round 1)", []string{""}},
		{"again although not called before", first + "; there-m/d (1 operations, round 1)", []string{""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			through := allowed(func(r *caller.Result) { r.Annotations["d.example.com/dispatcher.dev.mutated"] = tt.mutated })
			if tt.mutated == "" {
				delete(through.Annotations, "d.example.com/dispatcher.dev.mutated")
			}
			check(t, played(pair.Pair{Direct: pair.Oracle{Result: direct, Place: "here-"}, Through: through, Place: "there-"}, nil), tt.rows)
		})
	}
}
