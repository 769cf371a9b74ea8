// SPDX-License-Identifier: Apache-2.0

package pair_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/conformance/caller"
	"github.com/admission-dispatcher/dispatcher/conformance/pair"
)

// denied is a denial by a validating webhook.
func denied(code int32, message string) caller.Result {
	return caller.Result{Phase: caller.Validating, Status: metav1.Status{Code: code, Message: message}}
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

// TestDifferences shows that the comparison is not blind.
func TestDifferences(t *testing.T) {
	const no = `admission webhook "a.example.com" denied the request: no`
	direct := allowed(func(r *caller.Result) { r.Annotations = map[string]string{"a.example.com/verdict": "ok"} })
	tests := []struct {
		name            string
		direct, through caller.Result
		rows            []string // "" is a difference that is not meant
	}{
		{"the same", direct, allowed(nothing), nil},
		{"a wrong allow", denied(403, no), allowed(nothing), []string{""}},
		{"a wrong denial", direct, denied(403, no), []string{""}},
		{"another object", direct, allowed(func(r *caller.Result) { r.Object = map[string]any{"a": "c"} }), []string{""}},
		{"a warning is lost", direct, allowed(func(r *caller.Result) { r.Warnings = nil }), []string{""}},
		{"a warning of ours", direct, allowed(func(r *caller.Result) { r.Warnings = append(r.Warnings, `failed calling webhook "x"`) }), []string{pair.FailOpen}},
		{"an annotation is lost", direct, allowed(func(r *caller.Result) { r.Annotations = nil }), []string{""}},
		{"one key in both phases", allowed(func(r *caller.Result) { r.Annotations = map[string]string{"a.example.com/verdict": "later"} }), allowed(func(r *caller.Result) {
			r.Annotations = map[string]string{"m.example.com/a.example.com.verdict": "earlier", "v.example.com/a.example.com.verdict": "later"}
		}), nil},
		{"an annotation nobody gave", direct, allowed(func(r *caller.Result) { r.Annotations["d.example.com/b.example.com.x"] = "y" }), []string{""}},
		{"failed open alone", direct, allowed(func(r *caller.Result) { r.Annotations["d.example.com/dispatcher.dev.failed-open"] = "x (Timeout)" }), []string{""}},
		{"another code", denied(403, no), denied(400, "through: "+no), []string{""}},
		{"another text", denied(403, no), denied(403, "through: yes"), []string{""}},
		{"two lines", denied(403, no+"\nand no"), denied(403, "through: "+no+"\n  and no"), []string{pair.Texts}},
		{"two lines, not indented", denied(403, no+"\r\nand no"), denied(403, "through: "+no+"\nand no"), []string{""}},
		{"two lines in one", denied(403, no+"\nand no"), denied(403, "through: "+no+" and no"), []string{""}},
		{"two lines, coloured", denied(403, no+"\n\x1b[31mand no"), denied(403, "through: "+no+"\n   [31mand no"), []string{pair.Texts}},
		{"a timeout", denied(500, `failed calling webhook "x"`), denied(504, `failed calling webhook "x"`), []string{pair.Causes}},
		{"a failure with the code of a denial", denied(500, `failed calling webhook "x"`), denied(403, `failed calling webhook "x"`), []string{""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := pair.Pair{Direct: pair.Oracle{Result: tt.direct, Alone: func() ([]caller.Result, error) { return nil, nil }}, Through: tt.through}
			got, err := p.Differences()
			if err != nil || len(got) != len(tt.rows) {
				t.Fatalf("%v, %v, want rows %q", got, err, tt.rows)
			}
			for i, d := range got {
				if d.Row != tt.rows[i] {
					t.Errorf("%v has row %q, want %q", d, d.Row, tt.rows[i])
				}
			}
		})
	}
}
