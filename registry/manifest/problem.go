// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Problem is one thing that is wrong with a configuration: what, where, and
// why. The command line, the log and the status page render the same values.
type Problem struct {
	File   string `json:"file,omitempty"`   // the manifest, as its Source calls it
	Object string `json:"object,omitempty"` // Kind/name
	Field  string `json:"field,omitempty"`  // field path as Kubernetes writes it
	Value  string `json:"value,omitempty"`  // the offending value, cut short; never a secret
	Reason string `json:"reason"`
	Rule   string `json:"rule,omitempty"` // of docs/lint.md, of a warning that is one of its findings
}

// String returns the problem as one line, whatever the names are that it quotes.
func (p Problem) String() string {
	var b strings.Builder
	for _, part := range []string{p.File, p.Object, p.Field} {
		if part != "" {
			b.WriteString(part)
			b.WriteString(": ")
		}
	}
	if p.Value != "" {
		fmt.Fprintf(&b, "%q: ", p.Value)
	}
	b.WriteString(p.Reason)
	if p.Rule != "" {
		b.WriteString(" (" + p.Rule + ")")
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, b.String())
}

// bounded is p without most of a name or a reason that is longer than anybody reads: each
// may quote what an object says.
func (p Problem) bounded() Problem {
	for _, text := range []*string{&p.Object, &p.Field, &p.Reason} {
		*text = cut(*text, shownText)
	}
	p.Value = cut(p.Value, shownValue)
	return p
}

// Origin says where an object stands.
type Origin struct {
	File      string
	Object    string // Kind/name
	Directory string // as File has it
}

// Problem returns a Problem of the object at path, which may be nil.
func (o Origin) Problem(path *field.Path, value, reason string) Problem {
	p := Problem{File: o.File, Object: o.Object, Value: value, Reason: reason}
	if path != nil {
		p.Field = path.String()
	}
	return p.bounded()
}

// Problems renders what Kubernetes' validation found, in its words.
func (o Origin) Problems(errs field.ErrorList) []Problem {
	var out []Problem
	for _, e := range errs {
		p := Problem{File: o.File, Object: o.Object, Field: e.Field, Reason: e.Type.String()}
		if e.Detail != "" {
			p.Reason += ": " + e.Detail
		}
		if hasValue(e.Type) {
			p.Value = fmt.Sprint(e.BadValue)
		}
		out = append(out, p.bounded())
	}
	return out
}

// ProblemsOf renders what validation found in one object of a file.
func ProblemsOf(file, object string, errs field.ErrorList) []Problem {
	return Origin{File: file, Object: object}.Problems(errs)
}

// hasValue tells the types of error that show the offending value.
func hasValue(t field.ErrorType) bool {
	return t == field.ErrorTypeInvalid || t == field.ErrorTypeNotSupported || t == field.ErrorTypeDuplicate
}

// The bounds of what a Problem shows, in bytes: of its Value, and of each other text.
const (
	shownValue = 80
	shownText  = 2 << 10
)

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// SortProblems puts ps in the order of files and objects; within one object
// they stay as they were found.
func SortProblems(ps []Problem) {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return strings.Compare(a.Object, b.Object)
	})
}

// Attributes are what a log line says of p.
func (p Problem) Attributes() []any {
	attributes := []any{slog.String("file", p.File), slog.String("object", p.Object),
		slog.String("field", p.Field), slog.String("value", p.Value), slog.String("reason", p.Reason)}
	if p.Rule != "" {
		attributes = append(attributes, slog.String("rule", p.Rule))
	}
	return attributes
}
