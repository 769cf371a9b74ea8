// SPDX-License-Identifier: Apache-2.0

// Package objectpath reads paths to members of objects, such as
// metadata.annotations["example.com/token"].
package objectpath

import (
	"errors"
	"strings"
)

// Path leads to members of an object. The empty Path leads nowhere.
type Path []Step

// Step is one name of a Path, or any.
type Step struct {
	Name string
	Any  bool // *: every member, whatever its name
}

// Is reports whether the Step goes to the member of that name.
func (s Step) Is(name string) bool { return s.Any || s.Name == name }

// ErrSyntax is what is said of every text that is not a path.
var ErrSyntax = errors.New(`must be names with dots between them; a name with a dot stands as ["name"]`)

// quoteSigns begin and end a name in brackets; it may have any other character.
const quoteSigns = `"'`

// Parse reads names with dots between them. * is any name. A name with a dot or
// another sign of this notation stands in brackets and quotes, as in JSONPath:
// data["app.yaml"]. The error is ErrSyntax.
func Parse(text string) (Path, error) {
	var path Path
	for rest := text; ; {
		step, after, ok := next(rest, len(path) == 0)
		if !ok {
			return nil, ErrSyntax
		}
		path = append(path, step)
		if after == "" {
			return path, nil
		}
		rest = after
	}
}

// next reads the step that text begins with: .name, or name if it is the first,
// or a name in brackets.
func next(text string, first bool) (step Step, rest string, ok bool) {
	if strings.HasPrefix(text, "[") {
		return bracketed(text[1:])
	}
	if !first {
		if text, ok = strings.CutPrefix(text, "."); !ok {
			return Step{}, "", false
		}
	}
	end := strings.IndexAny(text, ".[")
	if end < 0 {
		end = len(text)
	}
	name := text[:end]
	if name == "" || strings.ContainsAny(name, "]"+quoteSigns) {
		return Step{}, "", false
	}
	if name == "*" {
		return Step{Any: true}, text[end:], true
	}
	return Step{Name: name}, text[end:], true
}

// bracketed reads "name"] or 'name'], or *].
func bracketed(text string) (step Step, rest string, ok bool) {
	if rest, ok := strings.CutPrefix(text, "*]"); ok {
		return Step{Any: true}, rest, true
	}
	if text == "" || !strings.Contains(quoteSigns, text[:1]) {
		return Step{}, "", false
	}
	name, rest, ok := strings.Cut(text[1:], text[:1]+"]")
	return Step{Name: name}, rest, ok && name != "" && !strings.Contains(name, text[:1])
}
