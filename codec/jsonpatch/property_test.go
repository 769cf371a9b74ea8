// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestApplyLikeV4 grows patches of operations that v4 accepts, and holds every
// one on the way, and every operation that it refuses, against json-patch.v4.
func TestApplyLikeV4(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := []byte(drawContainer(t, 4))
		var patch []byte
		for at := doc; len(patch) < 1000 && rapid.IntRange(0, 8).Draw(t, "more") > 0; {
			longer := Concat(bytes.Clone(patch), []byte("["+drawOperation(t, at)+"]"))
			compare(t, doc, longer)
			if patched, err := applyV4(doc, longer); err == nil {
				patch, at = longer, patched
			}
		}
	})
}

// TestApplyOneByOneLikeAtOnce checks that operations do the same in one patch
// and in several, which is what concatenating patches relies on.
func TestApplyOneByOneLikeAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := []byte(drawContainer(t, 4))
		all, step := []byte(`[]`), doc
		for range rapid.IntRange(1, 8).Draw(t, "patches") {
			patch := []byte("[" + drawOperation(t, step) + "]")
			if next, err := applyOurs(step, patch); err == nil {
				step, all = next, Concat(all, patch)
			}
		}
		if copiesAddedNull(all) || bytes.Contains(all, []byte(`"test"`)) {
			return // v4 tells a null from an added one only within one patch
		}
		atOnce, err := applyOurs(doc, all)
		if err != nil {
			t.Fatalf("%v\ndoc %s\npatch %s", err, doc, all)
		}
		if diff := cmp.Diff(decodeValue(t, atOnce), decodeValue(t, step)); diff != "" {
			t.Fatalf("-at once +one by one: %s\ndoc %s\npatch %s", diff, doc, all)
		}
	})
}

// TestDocumentLikeOnePatch checks that patches on one Document give, to the byte,
// what all their operations in one patch give: that is what a caller applies.
func TestDocumentLikeOnePatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := []byte(drawContainer(t, 4))
		d, err := Open(doc, Limits{})
		if err != nil {
			return
		}
		all, at := []byte(`[]`), doc
		for range rapid.IntRange(1, 8).Draw(t, "patches") {
			patch := []byte("[" + drawOperation(t, at) + "," + drawOperation(t, at) + "]")
			longer := Concat(bytes.Clone(all), patch)
			atOnce, atOnceErr := applyOurs(doc, longer)
			if err := applyTo(d, patch); (err == nil) != (atOnceErr == nil) {
				t.Fatalf("at once %v, one by one %v\ndoc %s\npatch %s", atOnceErr, err, doc, longer)
			} else if err != nil {
				return
			}
			step, err := d.Append(nil, Limits{})
			if err != nil || !bytes.Equal(step, atOnce) {
				t.Fatalf("%v\nat once    %s\none by one %s\ndoc %s\npatch %s", err, atOnce, step, doc, longer)
			}
			all, at = longer, step
		}
	})
}

func applyTo(d *Document, patch []byte) error {
	p, err := Decode(patch, Limits{})
	if err == nil {
		_, err = d.Apply(p, Limits{})
	}
	return err
}

// TestChanged checks that a patch that is said to change nothing changes nothing,
// and one of a single operation that is said to does.
func TestChanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := []byte(drawContainer(t, 4))
		d, err := Open(doc, Limits{})
		if err != nil {
			return
		}
		operations := drawOperation(t, doc)
		single := rapid.Bool().Draw(t, "single")
		for !single && rapid.Bool().Draw(t, "more") {
			operations += "," + drawOperation(t, doc)
		}
		p, err := Decode([]byte("["+operations+"]"), Limits{})
		if err != nil {
			return
		}
		changed, err := d.Apply(p, Limits{})
		if err != nil {
			return
		}
		patched, err := d.Append(nil, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		differs := !cmp.Equal(decodeValue(t, doc), decodeValue(t, patched))
		if differs && !changed || single && changed && !differs && p.operations[0].kind.value != "move" {
			t.Fatalf("changed %v\ndoc     %s\npatch   %s\npatched %s", changed, doc, operations, patched)
		}
	})
}

// drawOperation draws an operation that is likely to apply to doc.
func drawOperation(t *rapid.T, doc []byte) string {
	op := rapid.SampledFrom([]string{"add", "add", "remove", "replace", "move", "copy", "test", "test"}).Draw(t, "op")
	path, value := drawPointer(t, doc)
	if op != "test" || rapid.IntRange(0, 3).Draw(t, "other value") == 0 {
		value = drawValue(t, 2)
	}
	fields := []string{`"op":` + quote(op), `"path":` + quote(path)}
	if op == "move" || op == "copy" || rapid.IntRange(0, 9).Draw(t, "stray from") == 0 {
		from, _ := drawPointer(t, doc)
		fields = append(fields, `"from":`+quote(from))
	}
	if op != "remove" && rapid.IntRange(0, 9).Draw(t, "no value") > 0 {
		fields = append(fields, `"value":`+value)
	}
	return "{" + strings.Join(rapid.Permutation(fields).Draw(t, "fields"), ",") + "}"
}

// drawPointer walks down doc and returns where it ends, perhaps one step
// further, with the JSON of what is there.
func drawPointer(t *rapid.T, doc []byte) (pointer, value string) {
	at := node{text: string(doc), nesting: 1}
	for rapid.IntRange(0, 3).Draw(t, "deeper") > 0 {
		token := drawToken(t, &at)
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
		if at.open == nil {
			return pointer, null
		}
		n, err := at.open.get(token)
		if n == nil || err != nil {
			return pointer, null
		}
		at = *n
	}
	return pointer, string(at.append(nil))
}

func drawToken(t *rapid.T, at *node) string {
	tokens := []string{"a", "0", "-", "-1", "", "~", "x"}
	switch open, _ := at.enter(new(meter)); open := open.(type) {
	case *object:
		for i := range open.members {
			tokens = append(tokens, open.members[i].name, open.members[i].name)
		}
	case *array:
		for i := range open.elements {
			tokens = append(tokens, strconv.Itoa(i), strconv.Itoa(i-len(open.elements)))
		}
	}
	return rapid.SampledFrom(tokens).Draw(t, "token")
}

func drawValue(t *rapid.T, depth int) string {
	if depth > 0 && rapid.Bool().Draw(t, "container") {
		return drawContainer(t, depth)
	}
	return rapid.SampledFrom([]string{`null`, `true`, `0`, `1`, `1.0`, `-0`, `1e3`, `98765432109876543210`, `""`, `"a"`, `"<"`, `"\u003c"`, `"é\n"`, `{}`, `[]`}).Draw(t, "value")
}

func drawContainer(t *rapid.T, depth int) string {
	pad := rapid.SampledFrom([]string{"", "", " ", "\t\n"}).Draw(t, "space")
	values := make([]string, rapid.IntRange(0, 4).Draw(t, "size"))
	for i := range values {
		values[i] = pad + drawValue(t, depth-1)
	}
	if rapid.IntRange(0, 2).Draw(t, "array") == 0 {
		return "[" + strings.Join(values, pad+",") + pad + "]"
	}
	keys := rapid.Permutation([]string{`"a"`, `"b"`, `"c"`, `"0"`, `"\u0061\u0062"`, `"~"`, `"/"`, `"é"`, `"<"`, `""`}).Draw(t, "keys")
	for i := range values {
		values[i] = pad + keys[i] + pad + ":" + values[i]
	}
	return "{" + strings.Join(values, pad+",") + pad + "}"
}

// TestManyMembersLikeV4 exercises the index of large objects.
func TestManyMembersLikeV4(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.Map(rapid.IntRange(0, 3*indexed), strconv.Itoa)
		members := rapid.SliceOfDistinct(key, rapid.ID).Draw(t, "members")
		for i := range members {
			members[i] = quote(members[i]) + ":" + strconv.Itoa(i)
		}
		operations := make([]string, rapid.IntRange(0, 3*indexed).Draw(t, "operations"))
		for i := range operations {
			op := rapid.SampledFrom([]string{"add", "replace", "move", "copy", "remove"}).Draw(t, "op")
			operations[i] = `{"op":"` + op + `","path":"/o/` + key.Draw(t, "path") + `","from":"/o/` + key.Draw(t, "from") + `","value":"v"}`
		}
		doc := `{"o":{` + strings.Join(members, ",") + `}}`
		applied := operations[:0]
		for _, operation := range operations { // drop what would fail, such as removing twice
			if _, err := applyOurs([]byte(doc), []byte("["+strings.Join(append(applied, operation), ",")+"]")); err == nil {
				applied = append(applied, operation)
			}
		}
		compare(t, []byte(doc), []byte("["+strings.Join(applied, ",")+"]"))
	})
}
