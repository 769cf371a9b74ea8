// SPDX-License-Identifier: Apache-2.0

package jsonpatch_test

import (
	"encoding/json"
	"reflect"
	"testing"

	oracle "gopkg.in/evanphx/json-patch.v4"

	"github.com/admission-dispatcher/dispatcher/codec/jsonpatch"
)

func TestDiff(t *testing.T) {
	for _, row := range []struct{ before, after, want string }{
		{`{"a":1}`, `{"a":1}`, `[]`},
		{`{"b":1,"a":{"x":[1,2]}}`, `{"b":"1","a":{"x":[1,3]},"c":{}}`,
			`[{"op":"replace","path":"/a/x/1","value":3},{"op":"add","path":"/b","value":"1"},{"op":"add","path":"/c","value":{}}]`},
		{`{"a":[1]}`, `{"a":[1,2]}`, `[{"op":"add","path":"/a","value":[1,2]}]`},
		{`{"a":{"/~":1,"":2}}`, `{"a":{"/~":2}}`, `[{"op":"remove","path":"/a/"},{"op":"add","path":"/a/~1~0","value":2}]`},
		{`{"a":null,"b":null,"l":[null]}`, `{"a":1,"b":null,"l":[{}]}`, `[{"op":"add","path":"/a","value":1},{"op":"replace","path":"/l/0","value":{}}]`},
		{`{"a":{"b":1}}`, `{"a":[1]}`, `[{"op":"add","path":"/a","value":[1]}]`},
	} {
		got, err := jsonpatch.Diff(nil, decoded(t, row.before), decoded(t, row.after))
		if err != nil || string(got) != row.want {
			t.Errorf("%s, %s: %s, %v, want %s", row.before, row.after, got, err, row.want)
		}
	}
}

// FuzzDiff makes one object of another, with the patch between them, as v4 does and as we
// do.
func FuzzDiff(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"a":1,"b":{"c":[1,2,{"d":null}]},"n":null}`, `{"a":"1","b":{"c":[1,{},{"d":0}]},"n":{}}`},
		{`{"a/b":1,"c~d":{"~1":2}}`, `{"a/b":2,"c~d":{"~1":[],"/":{}}}`},
		{`{"l":[null,[],{}]}`, `{"l":[[],{},null],"":0}`},
		{`{"a":{"":{"":1}}}`, `{"a":{"":{"":2,"0":1}}}`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		var from, to map[string]any
		if json.Unmarshal([]byte(before), &from) != nil || json.Unmarshal([]byte(after), &to) != nil || from == nil || to == nil {
			return
		}
		patch, err := jsonpatch.Diff(nil, from, to)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := jsonpatch.Diff(nil, from, to)
		if string(again) != string(patch) {
			t.Errorf("%s, and then %s", patch, again)
		}
		document, _ := json.Marshal(from) // without what Go reads otherwise than others
		theirs, err := oracle.DecodePatch(patch)
		if err != nil {
			t.Fatalf("%s: %v", patch, err)
		}
		made, err := theirs.Apply(document)
		if err != nil {
			t.Fatalf("%s to %s: %v", patch, document, err)
		}
		if got := decoded(t, string(made)); !reflect.DeepEqual(got, to) {
			t.Errorf("%s to %s: v4 makes %s", patch, document, made)
		}
		limits := jsonpatch.Limits{}
		ours, err := jsonpatch.Decode(patch, limits)
		if err != nil {
			t.Fatal(err)
		}
		d, err := jsonpatch.Open(document, limits)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Apply(ours, limits); err != nil {
			t.Fatalf("%s to %s: %v", patch, document, err)
		}
		if made, err = d.Append(nil, limits); err != nil || !reflect.DeepEqual(decoded(t, string(made)), to) {
			t.Errorf("%s to %s: it makes %s, %v", patch, document, made, err)
		}
	})
}

func decoded(t *testing.T, text string) (object map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}
