// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"strings"
	"testing"
)

// What writers of patches often do, and whether it changes anything.
func TestChangedByHabits(t *testing.T) {
	const doc = `{"metadata":{"labels":{"a":"1"},"annotations":null},"spec":{"list":[1,{"b":2}],"n":1.0},"twice":{"a":1,"a":2}}`
	for _, test := range []struct {
		name, patch string
		want        bool
	}{
		{"nothing", `[]`, false},
		{"test", `[{"op":"test","path":"/spec/n","value":1.0}]`, false},
		{"add what is there", `[{"op":"add","path":"/metadata/labels/a","value":"1"}]`, false},
		{"add another", `[{"op":"add","path":"/metadata/labels/a","value":"2"}]`, true},
		{"replace by the same, in another order and spacing", `[{"op":"replace","path":"/spec","value":{ "n":1.0, "list":[1, {"b":2} ]}}]`, false},
		{"replace by one with more members", `[{"op":"replace","path":"/metadata/labels","value":{"a":"1","b":"2"}}]`, true},
		{"replace by one with fewer members", `[{"op":"replace","path":"/spec","value":{"n":1.0}}]`, true},
		{"replace by a longer list", `[{"op":"replace","path":"/spec/list","value":[1,{"b":2},3]}]`, true},
		{"replace by a shorter list", `[{"op":"replace","path":"/spec/list","value":[1]}]`, true},
		{"replace a list by an object", `[{"op":"replace","path":"/spec/list","value":{"0":1}}]`, true},
		{"replace by another number", `[{"op":"replace","path":"/spec/n","value":1}]`, true},
		{"replace by one with another value", `[{"op":"replace","path":"/metadata/labels","value":{"a":"2"}}]`, true},
		{"replace by one with another key", `[{"op":"replace","path":"/metadata/labels","value":{"b":"1"}}]`, true},
		{"replace by a list with another element", `[{"op":"replace","path":"/spec/list","value":[2,{"b":2}]}]`, true},
		{"replace by another in its depth", `[{"op":"replace","path":"/spec","value":{"list":[1,{"b":3}],"n":1.0}}]`, true},
		{"replace by the same text, with a key twice", `[{"op":"replace","path":"/twice","value":{"a":1,"a":2}}]`, false},
		{"a change and then none", `[{"op":"add","path":"/spec/n","value":2},{"op":"add","path":"/metadata/labels/a","value":"1"}]`, true},
		{"a change and then a replacement by the same", `[{"op":"add","path":"/spec/n","value":2},{"op":"replace","path":"/metadata/labels/a","value":"1"}]`, true},
		{"a change and then the root by the same", `[{"op":"remove","path":"/spec"},{"op":"replace","path":"","value":` + strings.Replace(doc, `"spec":{"list":[1,{"b":2}],"n":1.0},`, "", 1) + `}]`, true},
		{"replace by a list what is an object", `[{"op":"replace","path":"/metadata/labels","value":["1"]}]`, true},
		{"null by null", `[{"op":"replace","path":"/metadata/annotations","value":null}]`, false},
		{"replace the root by itself", `[{"op":"replace","path":"","value":` + doc + `}]`, false},
		{"replace the root", `[{"op":"replace","path":"","value":{}}]`, true},
		{"into a list", `[{"op":"add","path":"/spec/list/-","value":1}]`, true},
		{"move to where it is", `[{"op":"move","from":"/metadata/labels","path":"/metadata/labels"}]`, false},
		{"copy onto an equal", `[{"op":"copy","from":"/metadata/labels/a","path":"/metadata/labels/a"}]`, false},
		{"remove", `[{"op":"remove","path":"/spec/n"}]`, true},
		{"there and back counts, as it cannot be told cheaply", `[{"op":"remove","path":"/spec/n"},{"op":"add","path":"/spec/n","value":1.0}]`, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := Open([]byte(doc), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			p, err := Decode([]byte(test.patch), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if changed, err := d.Apply(p, Limits{}); err != nil || changed != test.want {
				t.Errorf("changed = %v, %v", changed, err)
			}
		})
	}
}

// What was removed before is in no comparison.
func TestChangedAfterRemoval(t *testing.T) {
	d, err := Open([]byte(`{"a":{"x":1,"y":2}}`), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		patch string
		want  bool
	}{
		{`[{"op":"remove","path":"/a/x"}]`, true},
		{`[{"op":"replace","path":"/a","value":{"y": 2}}]`, false},
		{`[{"op":"test","path":"/a/y","value":2},{"op":"replace","path":"/a","value":{"y":2}}]`, false},
		{`[{"op":"replace","path":"/a","value":{"x":1,"y":2}}]`, true},
	} {
		p, err := Decode([]byte(step.patch), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if changed, err := d.Apply(p, Limits{}); err != nil || changed != step.want {
			t.Errorf("%s: changed = %v, %v", step.patch, changed, err)
		}
	}
}

// Whether something changed does not hang on where a null came from, as a test does.
func TestChangedOfNulls(t *testing.T) {
	d, err := Open([]byte(`{"a":{},"list":[null, 1]}`), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		patch string
		want  bool
	}{
		{`[{"op":"add","path":"/a/x","value":null}]`, true},
		{`[{"op":"replace","path":"/a","value":{"x": null}}]`, false},
		{`[{"op":"replace","path":"/list","value":[null,1]}]`, false},
	} {
		p, err := Decode([]byte(step.patch), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if changed, err := d.Apply(p, Limits{}); err != nil || changed != step.want {
			t.Errorf("%s: changed = %v, %v", step.patch, changed, err)
		}
	}
}

// What may be compared is what the patch is worth, to the byte.
func TestComparingAtItsBound(t *testing.T) {
	const patch = `[{"op":"replace","path":"/a","value":[]}]`
	bound := 8*len(patch) + stride
	for size, want := range map[int]bool{bound: false, bound + 1: true} {
		d, err := Open([]byte(`{"a":[`+strings.Repeat(" ", size-len(`[]`))+`]}`), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := Decode([]byte(patch), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if changed, err := d.Apply(p, Limits{}); err != nil || changed != want {
			t.Errorf("%d bytes: changed = %v, %v", size, changed, err)
		}
	}
}

// Comparing is bounded by the patch, not by the document, and leaves that as it is.
func TestComparingIsBounded(t *testing.T) {
	nested := strings.Repeat("[ ", 5000) + strings.Repeat("]", 5000)
	for value, replacement := range map[string]string{
		`[` + strings.Repeat("0, ", 1<<20) + `0]`:   `[0]`,
		`[[` + strings.Repeat("0, ", 1<<20) + `0]]`: `[[0]]`,
		nested: strings.ReplaceAll(nested, " ", ""),
	} {
		d, err := Open([]byte(`{"a":`+value+`}`), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := Decode([]byte(`[{"op":"replace","path":"/a","value":`+replacement+`}]`), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		kept := d.Footprint()
		a := newApplication(d, p, Limits{})
		changed, err := a.run(p)
		if err != nil || !changed {
			t.Errorf("changed = %v, %v", changed, err)
		}
		if most := 8*p.bytes + stride; a.comparing.left < -most {
			t.Errorf("%d of work for a patch of %d bytes", most-a.comparing.left, p.bytes)
		}
		if d.Footprint() != kept {
			t.Error("comparing has opened the document")
		}
	}
}

// Objects that brackets of HTML make six times as large are as large as they are.
func TestResultCountsUnescapedBytes(t *testing.T) {
	limits := Limits{Result: 1 << 10}
	for _, test := range []struct {
		text string
		ok   bool
	}{
		{strings.Repeat(`\u003c`, 900), true},
		{strings.Repeat(`\u0026\u003e`, 450), true},
		{strings.Repeat(`\u003c`, 1<<10-len(`{"a":""}`)), true},
		{strings.Repeat(`\u003c`, 1<<10-len(`{"a":""}`)+1), false},
		{strings.Repeat(`x`, 1<<10-len(`{"a":""}`)), true},
		{strings.Repeat(`x`, 1<<10-len(`{"a":""}`)+1), false},
		{strings.Repeat(`\u003c`, 1100), false},
		{strings.Repeat(`x`, 1100), false},
	} {
		_, err := applied(Patch{}, []byte(`{"a":"`+test.text+`"}`), limits)
		if (err == nil) != test.ok {
			t.Errorf("%.6s x %d: %v", test.text, len(test.text), err)
		}
	}
}

// What decides about an object can be looked at without the rest of it.
func TestOutline(t *testing.T) {
	d, err := Open([]byte(`{"kind":"Pod","Kind":1,"metadata":{"name":"a"},"spec":{"big":[0]}}`), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(d.AppendOutline(nil, "kind", "metadata")); got != `{"kind":"Pod","Kind":null,"metadata":{"name":"a"},"spec":null}` {
		t.Error(got)
	}
}
