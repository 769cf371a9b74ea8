// SPDX-License-Identifier: Apache-2.0

package objectpath_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/internal/objectpath"
)

func names(list ...string) objectpath.Path {
	var path objectpath.Path
	for _, name := range list {
		path = append(path, objectpath.Step{Name: name})
	}
	return path
}

func TestParse(t *testing.T) {
	anything := objectpath.Step{Any: true}
	for text, want := range map[string]objectpath.Path{
		"data":                            names("data"),
		"spec.containers.env":             names("spec", "containers", "env"),
		`data["app.yaml"]`:                names("data", "app.yaml"),
		`data['app.yaml']`:                names("data", "app.yaml"),
		`["a.b"]["c.d"].e`:                names("a.b", "c.d", "e"),
		`x['say "so"'].y`:                 names("x", `say "so"`, "y"),
		`x["*"]`:                          names("x", "*"),
		`x["]"]`:                          names("x", "]"),
		"spec.*.y":                        {{Name: "spec"}, anything, {Name: "y"}},
		"spec[*].y":                       {{Name: "spec"}, anything, {Name: "y"}},
		`metadata.annotations["e.com/t"]`: names("metadata", "annotations", "e.com/t"),
	} {
		got, err := objectpath.Parse(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"", ".", ".a", "a.", "a..b", "[", "]", "a]", "a[", "a[]", "a[0]", "a[b]", `a["b]`, `a["b"`, `a[""]`, `a["b"]c`,
		`a."b"`, `a.["b"]`, `a["b"c"]`, `a'b`,
	} {
		if got, err := objectpath.Parse(text); !errors.Is(err, objectpath.ErrSyntax) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// Every name can be said in brackets, with one sign or the other.
func TestAnyNameInBrackets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := names(rapid.SliceOfN(rapid.StringMatching(`[^"]+`), 1, 4).Draw(t, "names")...)
		text := ""
		for _, step := range want {
			text += `["` + step.Name + `"]`
		}
		if got, err := objectpath.Parse(text); err != nil || !cmp.Equal(want, got) {
			t.Fatalf("%s: %v, %v", text, got, err)
		}
	})
}
