// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestApplyLikeV4 holds patches that mostly apply against json-patch.v4.
func TestApplyLikeV4(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := drawContainer(t, 4)
		compare(t, []byte(doc), []byte(drawPatch(t)))
	})
}

// TestApplyOneByOneLikeAtOnce checks that operations do the same in one patch
// and in several, which is what concatenating patches relies on.
func TestApplyOneByOneLikeAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := []byte(drawContainer(t, 4))
		var all []byte
		atOnce, step := doc, doc
		for range rapid.IntRange(1, 8).Draw(t, "patches") {
			patch := []byte("[" + drawOperation(t) + "]")
			next, err := applyOurs(step, patch)
			if err != nil {
				continue
			}
			step, all = next, Concat(all, patch)
		}
		if copiesAddedNull(all) || strings.Contains(string(all), `"test"`) {
			return // v4 tells a null from an added one only within one patch
		}
		if all != nil {
			var err error
			if atOnce, err = applyOurs(doc, all); err != nil {
				t.Fatalf("%v\ndoc %s\npatch %s", err, doc, all)
			}
		}
		if string(canonical(t, atOnce)) != string(canonical(t, step)) {
			t.Fatalf("at once    %s\none by one %s", atOnce, step)
		}
	})
}

// canonical returns text without the white space that opening a level removes.
func canonical(t *rapid.T, text []byte) []byte {
	opened, err := applyOurs(text, []byte(`[]`))
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func drawPatch(t *rapid.T) string {
	operations := make([]string, rapid.IntRange(0, 8).Draw(t, "operations"))
	for i := range operations {
		operations[i] = drawOperation(t)
	}
	return "[" + strings.Join(operations, ",") + "]"
}

func drawOperation(t *rapid.T) string {
	op := rapid.SampledFrom([]string{"add", "add", "remove", "replace", "move", "copy", "test", "test"}).Draw(t, "op")
	fields := []string{`"op":` + quote(op), `"path":` + quote(drawPointer(t))}
	if op == "move" || op == "copy" || rapid.IntRange(0, 9).Draw(t, "stray from") == 0 {
		fields = append(fields, `"from":`+quote(drawPointer(t)))
	}
	if op != "remove" && rapid.IntRange(0, 9).Draw(t, "no value") > 0 {
		fields = append(fields, `"value":`+drawValue(t, 2))
	}
	return "{" + strings.Join(rapid.Permutation(fields).Draw(t, "fields"), ",") + "}"
}

// drawPointer draws from few reference tokens, so that many pointers hit.
func drawPointer(t *rapid.T) string {
	token := rapid.SampledFrom([]string{"a", "b", "a", "b", "c", "0", "1", "2", "-", "-1", "-2", "", "~0", "~1", "é", "<"})
	var pointer strings.Builder
	for range rapid.IntRange(0, 3).Draw(t, "tokens") {
		pointer.WriteString("/" + token.Draw(t, "token"))
	}
	return pointer.String()
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
