// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
	"unsafe"
)

func repeat(operation string, n int) []byte {
	return []byte("[" + strings.Repeat(operation+",", n-1) + operation + "]")
}

func limited(doc, patch []byte, limits Limits) error {
	p, err := Decode(patch, limits)
	if err != nil {
		return err
	}
	_, err = applied(p, doc, limits)
	return err
}

func TestLimits(t *testing.T) {
	const mib = 1 << 20
	add := func(size int) string {
		return `{"op":"add","path":"/x","value":"` + strings.Repeat("x", size) + `"}`
	}
	large := []byte(`{"a":"` + strings.Repeat("a", mib) + `"}`)
	deep := func(tokens int) []byte {
		return repeat(`{"op":"test","path":"`+strings.Repeat("/a", tokens)+`"}`, 1)
	}
	nested := []byte(strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200))
	escaped := func(s string, n int) []byte { return []byte(`{"a":"` + strings.Repeat(s, n) + `"}`) }
	tests := []struct {
		name  string
		doc   []byte
		patch []byte
		limit string // empty if the patch is within the limits
	}{
		{"C19 2000 operations", []byte(`{}`), repeat(add(1), 2000), ""},
		{"C19 2001 operations", []byte(`{}`), repeat(add(1), 2001), "2000 operations"},
		{"C19 patch of 1 MiB", []byte(`{}`), repeat(add(mib-2-len(add(0))), 1), ""},
		{"C19 patch over 1 MiB", []byte(`{}`), repeat(add(mib-1-len(add(0))), 1), "1048576 bytes"},
		{"C19 less than 3 MiB copied", large, repeat(`{"op":"copy","from":"/a","path":"/b"}`, 2), ""},
		{"C19 over 3 MiB copied", large, repeat(`{"op":"copy","from":"/a","path":"/b"}`, 3), "copies more than"},
		{"C19 copies that double", []byte(`{"a":[0]}`), repeat(`{"op":"copy","from":"/a","path":"/a/-"}`, 40), "copies more than"},
		{"C19 copies within themselves", []byte(`{"a":{"b":0}}`), repeat(`{"op":"copy","from":"/a","path":"/a/b"}`, 2000), "copies more than"},
		{"C19 pointer of 128 tokens", nested, repeat(`{"op":"remove","path":"`+strings.Repeat("/a", 128)+`"}`, 1), ""},
		{"C19 pointer of 129 tokens", nested, deep(129), "128 reference tokens"},
		{"C19 from of 129 tokens", nested, repeat(`{"op":"copy","path":"/b","from":"`+strings.Repeat("/a", 129)+`"}`, 1), "128 reference tokens"},
		{"C18 result over 3 MiB", large, repeat(`{"op":"copy","from":"/a","path":"/b"},{"op":"copy","from":"/a","path":"/c"},`+add(mib-200), 1), "patched document has more than"},
		// The size is that of the object, not of kube-apiserver's way of writing it.
		{"C18 520 KB of <", escaped(`\u003c`, 520<<10), repeat(add(1), 1), ""},
		{"C18 3 MiB of < and more", escaped(`\u003c`, 3*mib), repeat(add(1), 1), "patched document has more than"},
		{"C18 3 MiB of <, nearly", escaped(`\u003c`, 3*mib-100), repeat(add(1), 1), ""},
		{"C18 1.5 MiB of é, nearly", escaped(`\u00e9`, 3*mib/2-100), repeat(add(1), 1), ""},
		{"C18 1.5 MiB of é", escaped(`\u00e9`, 3*mib/2), repeat(add(1), 1), "patched document has more than"},
		{"C18 768 KiB of 😀", escaped(`\ud83d\ude00`, 3*mib/4), repeat(add(1), 1), "patched document has more than"},
		{"C18 768 KiB of 😀, nearly", escaped(`\ud83d\ude00`, 3*mib/4-100), repeat(add(1), 1), ""},
		{"C18 backslashes that escape nothing", escaped(`\\u003c`, mib/2), repeat(add(1), 1), "patched document has more than"},
		{"C18 3 MiB of quotes, nearly", escaped(`\"`, 3*mib-100), repeat(add(1), 1), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			limits := DefaultLimits()
			limits.Time = 0 // a slow machine is not a failure
			err := limited(test.doc, test.patch, limits)
			if test.limit == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			e, ok := errors.AsType[*Error](err)
			if !ok || !e.Limit || !strings.Contains(e.Reason, test.limit) {
				t.Fatalf("got %v, want a limit error about %s", err, test.limit)
			}
		})
	}
}

// TestTimeLimit gives bombs that would run for many seconds a moment.
func TestTimeLimit(t *testing.T) {
	inserts := repeat(`{"op":"add","path":"/a/0","value":0}`, 2000)
	ones := `{"a":[` + strings.Repeat("1,", 3<<19-10) + `1]}`
	nested := strings.Repeat(`{"a":`, 127) + `"` + strings.Repeat("x", 3<<20) + `"` + strings.Repeat("}", 127)
	tests := []struct {
		name       string
		doc, patch string
	}{
		{"C19 250 ms: inserts at the front of a long array", ones, string(inserts)},
		{"C19 250 ms: through a large and deep document", nested, `[{"op":"remove","path":"` + strings.Repeat("/a", 127) + `"}]`},
		{"C19 250 ms: deep equality", `{"a":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`, `[{"op":"test","path":"/a","value":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}]`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			limits := DefaultLimits()
			limits.Time = time.Millisecond
			e, ok := errors.AsType[*Error](limited([]byte(test.doc), []byte(test.patch), limits))
			if !ok || !e.Limit || e.Reason != tooSlow.Error() {
				t.Fatalf("got %v, want that the time is over", e)
			}
		})
	}
}

// The limits of the contract are those by default.
func TestDefaultTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMeter(DefaultLimits())
		<-time.After(249 * time.Millisecond)
		if err := m.check(); err != nil {
			t.Errorf("C19 within 250 ms: %v", err)
		}
		<-time.After(time.Millisecond)
		if err := m.check(); !errors.Is(err, tooSlow) {
			t.Errorf("C19 after 250 ms: %v", err)
		}
		m.restart(Limits{Time: time.Hour, Deadline: time.Now().Add(time.Second)})
		<-time.After(time.Second)
		if err := m.check(); !errors.Is(err, tooSlow) {
			t.Errorf("C19 at the deadline: %v", err)
		}
	})
}

// The time of Apply begins with Apply.
func TestTimeOfApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := Decode([]byte(`[{"op":"remove","path":"/a"}]`), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		d, err := Open([]byte(`{"a":1}`), Limits{Time: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		if _, err := d.Apply(p, Limits{Time: time.Second}); err != nil {
			t.Errorf("long after Open: %v", err)
		}
		if d, err = Open([]byte(`{"a":1}`), Limits{}); err != nil {
			t.Fatal(err)
		}
		_, err = d.Apply(p, Limits{Deadline: time.Now()})
		if e, ok := errors.AsType[*Error](err); !ok || e.Reason != tooSlow.Error() {
			t.Errorf("at its deadline: %v", err)
		}
	})
}

// The clock is looked at once in a stride, and what a bounded meter allows may be
// used up.
func TestMeter(t *testing.T) {
	m := meter{deadline: time.Now().Add(-time.Second)}
	for range 2 {
		if err := m.spend(stride - 1); err != nil {
			t.Errorf("before a stride: %v", err)
		}
		if err := m.spend(1); !errors.Is(err, tooSlow) {
			t.Errorf("after a stride: %v", err)
		}
	}
	m = meter{bounded: true, left: 10}
	if err := m.spend(10); err != nil {
		t.Errorf("all that is left: %v", err)
	}
	if err := m.spend(1); !errors.Is(err, tooCostly) {
		t.Errorf("more than is left: %v", err)
	}
}

// workOf returns what a step spends.
func workOf(t *testing.T, step func(m *meter) error) int {
	t.Helper()
	const plenty = 1 << 40
	m := meter{bounded: true, left: plenty}
	if err := step(&m); err != nil {
		t.Fatal(err)
	}
	return plenty - m.left
}

// Time is spent by what is read, once, and by the places that move.
func TestWork(t *testing.T) {
	const n = 1000
	long := `"` + strings.Repeat("x", 100) + `"`
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"%d":`, i)
	}
	for name, text := range map[string]string{
		"an array of short": "[0" + strings.Repeat(",0", n-1) + "]", "an array of long": "[" + long + strings.Repeat(","+long, n-1) + "]",
		"an object of short": "{" + strings.Join(keys, "0,") + "0}", "an object of long": "{" + strings.Join(keys, long+",") + long + "}",
	} {
		work := workOf(t, func(m *meter) error { _, err := parse(text, m); return err })
		if work < len(text) || work > len(text)+n*perMember {
			t.Errorf("%s: %d for %d bytes", name, work, len(text))
		}
	}
	open, err := parse("[0"+strings.Repeat(",0", n-1)+"]", new(meter))
	if err != nil {
		t.Fatal(err)
	}
	for token, most := range map[string]int{"0": n + 1, "-1": 2} {
		for name, step := range map[string]func(m *meter) error{
			"add":    func(m *meter) error { return open.add(token, node{text: null}, m) },
			"remove": func(m *meter) error { return open.remove(token, m) },
		} {
			if work := workOf(t, step); work > most || work < most-2 {
				t.Errorf("%s at %s of %d: %d", name, token, n, work)
			}
		}
	}
}

// What a Document takes is known, so that somebody can bound it.
func TestFootprint(t *testing.T) {
	const n = 1000
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(`"%d":[]`, i)
	}
	for name, test := range map[string]struct {
		doc   string
		least int
	}{
		"array":   {"[0" + strings.Repeat(",0", n-1) + "]", n * int(unsafe.Sizeof(element{}))},
		"object":  {"{" + strings.Join(members, ",") + "}", n * int(unsafe.Sizeof(member{}))},
		"nothing": {"{}", 0},
	} {
		d, err := Open([]byte(test.doc), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Footprint(); got < test.least || got > 3*test.least {
			t.Errorf("%s: %d bytes, at least %d", name, got, test.least)
		}
		before := d.Footprint()
		if _, err := d.Apply(Patch{}, Limits{}); err != nil || d.Footprint() != before {
			t.Errorf("%s: after a patch %d, %v", name, d.Footprint(), err)
		}
	}
}

// Each limit allows what it says, and not a byte more.
func TestAtTheLimit(t *testing.T) {
	doc := `{"a":"12345678"}`
	patch := `[{"op":"copy","from":"/a","path":"/b"}]`
	for _, limits := range []Limits{{CopyBytes: len(`"12345678"`)}, {Result: len(doc) + len(`,"b":"12345678"`)}, {PatchBytes: len(patch)}, {Operations: 1}, {Depth: 1}, {Nesting: 1}} {
		if err := limited([]byte(doc), []byte(patch), limits); err != nil {
			t.Errorf("%+v: %v", limits, err)
		}
	}
	deeper := `[{"op":"copy","from":"/a","path":"/b"},{"op":"add","path":"/c","value":{}},{"op":"remove","path":"/c"},{"op":"add","path":"/c","value":{}},{"op":"add","path":"/c/d","value":1}]`
	for _, limits := range []Limits{{CopyBytes: len(`"12345678"`) - 1}, {Result: len(doc) + len(`,"b":"12345678","c":{"d":1}`) - 1}, {PatchBytes: len(deeper) - 1}, {Operations: 4}, {Depth: 1}, {Nesting: 1}} {
		if err := limited([]byte(doc), []byte(deeper), limits); err == nil {
			t.Errorf("%+v: more is allowed", limits)
		}
	}
}

// Time and Deadline: what is first ends it.
func TestDeadline(t *testing.T) {
	ones := []byte(`{"a":[` + strings.Repeat("1,", 1<<20) + `1]}`)
	patch := repeat(`{"op":"add","path":"/a/0","value":0}`, 100)
	for _, limits := range []Limits{
		{Time: time.Hour, Deadline: time.Now().Add(-time.Second)},
		{Time: time.Nanosecond, Deadline: time.Now().Add(time.Hour)},
		{Deadline: time.Now().Add(-time.Second)},
	} {
		if e, ok := errors.AsType[*Error](limited(ones, patch, limits)); !ok || !e.Limit || e.Reason != tooSlow.Error() {
			t.Errorf("%+v: got %v, want that the time is over", limits, e)
		}
	}
}

func TestError(t *testing.T) {
	long := strings.Repeat("é", 1000)
	_, err := applyOurs([]byte(`{}`), fmt.Appendf(nil, `[{"op":"test","path":"/a"},{"op":"%s","path":"/%s"}]`, long, long))
	e, ok := errors.AsType[*Error](err)
	switch {
	case !ok:
		t.Fatalf("got %v", err)
	case e.Index != 1, e.Limit:
		t.Errorf("got %+v", e)
	case len(e.Op) > maxErrorOp, len(e.Path) > maxErrorPath:
		t.Errorf("op of %d bytes, path of %d", len(e.Op), len(e.Path))
	case !utf8.ValidString(e.Op), !utf8.ValidString(e.Path), !strings.HasPrefix(e.Path, "/éé"):
		t.Errorf("op %q, path %q", e.Op, e.Path)
	}
	if text := err.Error(); !strings.HasPrefix(text, "operation 1: ") || strings.Contains(text, "é") {
		t.Errorf("text %q", text)
	}
}

// An error repeats what fits, and names the operation from the first on.
func TestErrorAtItsLength(t *testing.T) {
	for _, tt := range []struct {
		size  int
		whole bool
	}{{maxErrorPath, true}, {maxErrorPath + 1, false}} {
		path := "/" + strings.Repeat("x", tt.size-1)
		_, err := applyOurs([]byte(`{}`), []byte(`[{"op":"none","path":"`+path+`"}]`))
		e, ok := errors.AsType[*Error](err)
		if !ok || (e.Path == path) != tt.whole || len(e.Path) != maxErrorPath || e.Error() != "operation 0: the operation is unknown" {
			t.Errorf("%d bytes: %v, path of %d", tt.size, err, len(e.Path))
		}
	}
}

// What is no JSON is called that, whatever else is wrong behind it.
func TestErrorOfSyntax(t *testing.T) {
	for _, doc := range []string{`{"a":1,"a":tru}`, `{"a":tru,"a":1}`, `{"a":1,"a`, `[1,tru]`} {
		_, err := Open([]byte(doc), Limits{})
		if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(e.Reason, "not strict JSON") {
			t.Errorf("%s: %v", doc, err)
		}
	}
	for _, patch := range []string{`[{"op":"add","path":"/a"},tru]`, `[tru]`, `[{"op":tru}]`} {
		_, err := Decode([]byte(patch), Limits{})
		if e, ok := errors.AsType[*Error](err); !ok || e.Index != -1 || !strings.Contains(e.Reason, "not strict JSON") {
			t.Errorf("%s: %v", patch, err)
		}
	}
}

func TestErrorOfTheWholePatch(t *testing.T) {
	for _, patch := range []string{`{}`, `[{"op":"remove","path":"/a"}`, strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)} {
		_, err := Decode([]byte(patch), Limits{})
		if e, ok := errors.AsType[*Error](err); !ok || e.Index >= 0 && patch[0] == '{' {
			t.Errorf("got %v for %.20s", err, patch)
		}
	}
}

func TestNesting(t *testing.T) {
	nested := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	for _, test := range []struct {
		name, doc, patch string
		ok               bool
	}{
		{"document of 10000", nested(10_000), `[]`, true},
		{"document of 10001", nested(10_001), `[]`, false},
		{"result of 10000", `{"a":` + nested(9_998) + `,"b":{}}`, `[{"op":"move","from":"/a","path":"/b/c"}]`, true},
		{"result of 10001", `{"a":` + nested(9_999) + `,"b":{}}`, `[{"op":"copy","from":"/a","path":"/b/c"}]`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := applyOurs([]byte(test.doc), []byte(test.patch)); (err == nil) != test.ok {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// By default an object is as deep as it can be in a review, where it is two levels down.
func TestDefaultNesting(t *testing.T) {
	for depth, ok := range map[int]bool{9_998: true, 9_999: false} {
		doc := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		limits := DefaultLimits()
		limits.Time = 0 // a slow machine is not a failure
		if err := limited([]byte(doc), []byte(`[]`), limits); (err == nil) != ok {
			t.Errorf("%d levels: %v", depth, err)
		}
	}
}

func TestConcat(t *testing.T) {
	const a, b = `{"op":"remove","path":"/a"}`, `{"op":"remove","path":"/b"}`
	for _, test := range []struct{ dst, ops, want string }{
		{"", "[" + a + "]", "[" + a + "]"},
		{"[]", "[" + a + "]", "[" + a + "]"},
		{"null", "[" + a + "]", "[" + a + "]"},
		{"[" + a + "]", "[" + b + "]", "[" + a + "," + b + "]"},
		{"[" + a + "] \n", " [ " + b + " ] ", "[" + a + "," + b + "]"},
		{"[" + a + "]", "[ ]", "[" + a + "]"},
		{"[" + a + "]", "null", "[" + a + "]"},
		{"", "", "[]"},
	} {
		if got := string(Concat([]byte(test.dst), []byte(test.ops))); got != test.want {
			t.Errorf("Concat(%q, %q) = %s, want %s", test.dst, test.ops, got, test.want)
		}
	}
}
