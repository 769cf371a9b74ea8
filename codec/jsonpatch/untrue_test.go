// SPDX-License-Identifier: Apache-2.0

package jsonpatch_test

import (
	"encoding/json"
	"errors"
	"testing"

	oracle "gopkg.in/evanphx/json-patch.v4"

	"github.com/admission-dispatcher/dispatcher/codec/jsonpatch"
)

// A test that finds another value is told apart from one that cannot be made, where v4
// does.
func TestUntrue(t *testing.T) {
	const document = `{"a":{"b":[1,2]},"n":null}`
	for _, patch := range []string{
		`[{"op":"test","path":"/a/b/0","value":2}]`,
		`[{"op":"test","path":"/a/c","value":2}]`,
		`[{"op":"test","path":"/n","value":2}]`,
		`[{"op":"test","path":"","value":2}]`,
		`[{"op":"add","path":"/a/c","value":1},{"op":"test","path":"/a/c","value":2}]`,
		`[{"op":"test","path":"/a/b/7","value":2}]`,
		`[{"op":"test","path":"/x/y","value":2}]`,
		`[{"op":"remove","path":"/x"}]`,
		`[{"op":"tests","path":"/a"}]`,
		`[{"op":"test","path":7}]`,
	} {
		theirs, err := oracle.DecodePatch([]byte(patch))
		if err != nil {
			t.Fatal(err)
		}
		_, want := theirs.Apply([]byte(document))
		limits := jsonpatch.DefaultLimits()
		ours, err := jsonpatch.Decode([]byte(patch), limits)
		if err != nil {
			t.Fatal(err)
		}
		d, err := jsonpatch.Open([]byte(document), limits)
		if err != nil {
			t.Fatal(err)
		}
		_, got := d.Apply(ours, limits)
		var said *jsonpatch.Error
		if !errors.As(got, &said) || want == nil {
			t.Fatalf("%s: %v, v4: %v", patch, got, want)
		}
		if said.Untrue != errors.Is(want, oracle.ErrTestFailed) {
			t.Errorf("%s: %v, v4: %v", patch, got, want)
		}
	}
}

// An explicit null is a value to v4, too, where nobody has read it from JSON.
func TestExplicit(t *testing.T) {
	const document = `{"a":1,"n":null,"l":[null]}`
	null := json.RawMessage("null")
	for _, path := range []string{"/a", "/n", "/x", "/x/y", "/added", "/l/0"} {
		test := map[string]*json.RawMessage{"op": raw("test"), "path": raw(path), "value": &null}
		theirs := oracle.Patch{{"op": raw("add"), "path": raw("/added"), "value": &null}, test}
		_, want := theirs.Apply([]byte(document))
		limits := jsonpatch.DefaultLimits()
		ours, err := jsonpatch.Decode([]byte(`[{"op":"add","path":"/added","value":null},{"op":"test","path":"`+path+`","value":null}]`), limits)
		if err != nil {
			t.Fatal(err)
		}
		d, err := jsonpatch.Open([]byte(document), limits)
		if err != nil {
			t.Fatal(err)
		}
		_, got := d.Apply(ours.Explicit(), limits)
		var said *jsonpatch.Error
		if errors.As(got, &said); (got == nil) != (want == nil) || got != nil && said.Untrue != errors.Is(want, oracle.ErrTestFailed) {
			t.Errorf("%s: %v, v4: %v", path, got, want)
		}
	}
}

func raw(text string) *json.RawMessage {
	quoted, _ := json.Marshal(text)
	return (*json.RawMessage)(&quoted)
}
