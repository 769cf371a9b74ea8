// SPDX-License-Identifier: Apache-2.0

package json

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// fragments are what JSON is sensitive to.
var fragments = []string{
	`"`, `\`, `{`, `}`, `[`, `]`, `:`, `,`, " ", "\n", "\t", "\r", "\v", "\x00", "\x1f", "\x7f", "\xff", "é", "😀",
	`\n`, `\"`, `\\`, `\/`, `\b`, `\u`, `\u00e9`, `\u003C`, `\ud83d\ude00`, `\ud800`, `\udc00`, `\x`, `0`, `-`, `.`, `e`, `E+`, `e-`, `1`, `9`, `true`, `false`, `null`, `nul`,
	`""`, `{}`, `[]`, `"a":`, `,"a":1`, `xxxxxxx`, strings.Repeat("x", 63), strings.Repeat(`\n`, 40), strings.Repeat(`\u003c`, 14),
}

// TestScan holds documents that are put together at random, and their neighbours,
// against encoding/json and jsontext.
func TestScan(t *testing.T) {
	valid := 0
	for seed := range uint64(4000) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		document := appendValue(nil, rnd, 3)
		if checkScan(t, string(document)) {
			valid++
		}
		for range 8 {
			at, fragment := rnd.IntN(len(document)+1), fragments[rnd.IntN(len(fragments))]
			checkScan(t, string(document[:at])+fragment+string(document[min(at+rnd.IntN(3), len(document)):]))
			checkScan(t, string(document[:at]))
		}
	}
	if valid < 1000 {
		t.Errorf("%d of 4000 are JSON", valid)
	}
}

// appendValue appends a value, which mostly is JSON.
func appendValue(dst []byte, rnd *rand.Rand, depth int) []byte {
	space := func() { dst = append(dst, []string{"", "", "", " ", "\r\n\t "}[rnd.IntN(5)]...) }
	space()
	defer space()
	kind := rnd.IntN(4)
	switch {
	case depth == 0 || kind == 0:
		return append(dst, []string{"0", "-0", "10", "1.50", "-7e9", "1E+2", "3.1e-7", "true", "false", "null"}[rnd.IntN(10)]...)
	case kind == 1:
		return appendText(dst, rnd)
	}
	opening := "[{"[kind-2]
	dst = append(dst, opening)
	for i := range rnd.IntN(4) {
		if i > 0 {
			dst = append(dst, ',')
		}
		if opening == '{' {
			space()
			dst = appendText(dst, rnd)
			space()
			dst = append(dst, ':')
		}
		dst = appendValue(dst, rnd, depth-1)
	}
	space()
	return append(dst, opening+2)
}

func appendText(dst []byte, rnd *rand.Rand) []byte {
	dst = append(dst, '"')
	for range rnd.IntN(8) {
		if f := fragments[rnd.IntN(len(fragments))]; f != `"` && f != `\` && f != `\u` && f != `\x` && f[0] >= ' ' && !strings.Contains(f, `"`) {
			dst = append(dst, f...)
		}
	}
	return append(dst, '"')
}

// Where a document is not JSON, and why.
func TestFaults(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth)
	for document, want := range map[string]string{
		``: "byte 0: unexpected end", `  `: "byte 2: unexpected end", `[1`: "byte 2: unexpected end", `{"a"`: "byte 4: unexpected end",
		`x`: "byte 0: expected a value", `[1,]`: "byte 3: expected a value", `nule`: "byte 0: expected a value",
		`{1:2}`: "byte 1: expected a key", `{"a":1,}`: "byte 7: expected a key", `{"a" 1}`: "byte 5: expected a colon",
		`[1 2]`: "byte 3: expected a comma or the end of the object or array", `{"a":1]`: "byte 6: expected a comma or the end of the object or array",
		`1 2`: "byte 2: expected nothing after the document", "\"a\nb\"": "byte 2: control character in a string", `"a\x"`: "byte 2: invalid escape in a string",
		`"`: "byte 1: unexpected end", `"\`: "byte 1: unexpected end", `"\u`: "byte 1: invalid escape in a string", `+1`: "byte 0: expected a value", `"\u12"`: "byte 1: invalid escape in a string", `["\ud800"]`: "byte 2: surrogate escape without its other half",
		`01`: "byte 0: invalid number", `[-]`: "byte 1: invalid number", `1.`: "byte 0: invalid number", `1e+`: "byte 0: invalid number",
		deep + `[`: "byte 10000: nested deeper than 10,000", deep + strings.Repeat("]", MaxDepth): "",
	} {
		s := scanner(document, false)
		got := ""
		if !s.Skip() || !s.End() {
			got = s.SyntaxError()
		}
		if want != "" {
			want = "not strict JSON at " + want
		}
		if got != want {
			t.Errorf("%.20q: got %q, want %q", document, got, want)
		}
	}
}

// Pass goes where Skip stops, and stops too.
func TestPass(t *testing.T) {
	for _, document := range []string{
		strings.Repeat("[", passDepth) + strings.Repeat("]", passDepth),
		strings.Repeat(`{"a":[`, passDepth/2) + "1" + strings.Repeat("]}", passDepth/2),
	} {
		if s := scanner(document, true); !s.Pass() || !s.End() {
			t.Errorf("%.20q: %s", document, s.SyntaxError())
		}
		if s := scanner("["+document+"]", true); s.Pass() {
			t.Errorf("%.20q: deeper than anything is passed", document)
		}
	}
}

// A document is walked over member by member, and its depth is known at each.
func TestWalk(t *testing.T) {
	s := scanner(` { "a" : [ [ ] , { "b" : { } } ] , "\u0062" : 1 } `, false)
	if s.Next() != '{' || !s.Enter() || s.Depth != 1 {
		t.Fatal("not entered")
	}
	var keys []string
	var deepest []int
	for first := true; s.More(first, '}'); first = false {
		s.Next()
		if s.Expects("a") {
			t.Error("a key that is not compact is expected")
		}
		raw, escaped, ok := s.Key()
		if !ok || escaped != strings.Contains(raw, `\`) || !s.Skip() {
			t.Fatal(s.SyntaxError())
		}
		keys, deepest = append(keys, raw), append(deepest, s.Deepest)
	}
	if !s.End() || s.Depth != 0 || strings.Join(keys, " ") != `a \u0062` || deepest[0] != 4 || deepest[1] != 1 {
		t.Errorf("%q %v, depth %d: %s", keys, deepest, s.Depth, s.Fault)
	}
	for _, document := range []string{`["a","b" "c"]`, `["a",`, `["a"`} {
		s := scanner(document, false)
		s.Next()
		s.Enter()
		for first := true; s.More(first, ']'); first = false {
			if s.Next(); !s.Skip() {
				break
			}
		}
		if s.Fault == "" {
			t.Errorf("%s is walked over to its end", document)
		}
	}
	s.Reset(strings.Repeat("[", MaxDepth+1))
	for s.Next() == '[' && s.Enter() {
	}
	if s.Fault != faultDepth || s.Depth != MaxDepth+1 {
		t.Errorf("entered %d containers: %s", s.Depth, s.Fault)
	}
}

// What can end a document stands at every place of the words and blocks that are
// looked at at once.
func TestLongStrings(t *testing.T) {
	for n := range 2*blockSize + 20 {
		for _, fragment := range []string{`"`, `\n`, `\"`, `\\`, `\u00e9`, `\u0000`, `\ud83d\ude00`, `\ud800`, `\`, `\u12`, `\x`, "\x00", "\x1f", "\x7f", "é", "\xff"} {
			for _, fill := range []string{"x", `\t`, `\u003c`} {
				text := strings.Repeat(fill, n/len(fill)) + strings.Repeat("y", n%len(fill)) + fragment
				checkScan(t, `"`+text+`"`)
				checkScan(t, `{"`+text+`":"z`+text+text+`"}`)
				checkScan(t, `"`+text)
				checkText(t, `"`+text+`zz"`)
			}
		}
	}
}

func TestIsVariant(t *testing.T) {
	for _, name := range []string{"kind", "status", "uid", "k", "ks"} {
		for _, key := range []string{
			"", "k", "kind", "Kind", "KIND", "kinds", "kin", "\u212Aind", "\u212A\u0131nd", "K\u0130nd", "status", "Status", "\u017Ftatus", "\u017Ftatu\u017F", "\u017F\u017F\u017F\u017F\u017F\u017F\u017F",
			"uid", "UID", "Uid", "vid", "\xff", "xtatus", "\x7Ftatus", "\u212A", "\u212A\u212A\u212A\u212A\u212A",
		} {
			if got, want := IsVariant(key, name), strings.EqualFold(key, name); got != want {
				t.Errorf("%q is a variant of %s: %v, want %v", key, name, got, want)
			}
			if got, want := IsVariant([]byte(key), name), strings.EqualFold(key, name); got != want {
				t.Errorf("%q as bytes is a variant of %s: %v, want %v", key, name, got, want)
			}
		}
	}
}

func TestExpects(t *testing.T) {
	for text, want := range map[string]bool{
		`"kind":1`: true, `"kind":`: true, `"kind"`: false, `"kind" :`: false, `"kinds":1`: false, `"Kind":1`: false, `kind":12`: false, `kkind":1`: false, `"kind::1`: false, `"kind"",`: false, `"kind';1`: false, `"kin`: false,
	} {
		s := scanner(text, false)
		if got := s.Expects("kind"); got != want || got && s.Pos != len(`"kind":`) || !got && s.Pos != 0 {
			t.Errorf("%s: %v at %d", text, got, s.Pos)
		}
	}
}

// Which bytes have to be UTF-8.
func TestReaderUTF8(t *testing.T) {
	for document, want := range map[string]string{
		`{"a":"é","b":"é"}`: "", "{\"a\":\"\xff\",\"b\":\"\xff\"}": "byte 6: invalid UTF-8", // b is foreign
		"{\"a\":\"\xff\"}": "byte 6: invalid UTF-8", "{\"b\":\"\xff\",\"c\":\"é\xc0\"}": "byte 16: invalid UTF-8", "{\"c\":\"\xff\",\"b\":1}": "byte 6: invalid UTF-8",
		"{\"b\":\"\xff\\ud800\",\"c\":\"\\ud800\"}": "byte 20: surrogate escape without its other half", "{\"b\":\"\xff\"}x": "byte 9: expected nothing after the document",
		"{\"b\":\"\xff\\ud800\"}": "", "{\"a\":\"\uFFFD\",\"b\":\"\xff\"}": "", "{\"b\":1,\"c\":\"\xff\",\"b\":2}": "byte 12: invalid UTF-8", `{"c":"\ud800"}`: "byte 6: surrogate escape without its other half",
	} {
		var r Reader
		r.Reset([]byte(document))
		r.CheckUTF8()
		got := ""
		if !r.Each(func(key []byte) bool {
			if string(key) == "b" {
				return r.SkipForeign()
			}
			return r.Skip()
		}) || !r.Finish() {
			got = r.SyntaxError()
		}
		if want != "" {
			want = "not strict JSON at " + want
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", document, got, want)
		}
	}
}

// What a Reader hands out stays as it is while it reads on, and is not written over
// by who appends to it.
func TestReaderText(t *testing.T) {
	var r Reader
	r.Reset([]byte(`{"k\u0065y":"te\u0078t","plain":"more\n"}`))
	var texts [][]byte
	if !r.Each(func(key []byte) bool {
		text, ok := r.Text()
		texts = append(texts, key, text)
		_ = append(append(text, "!!!!"...), append(key, "!!!!"...)...)
		return ok
	}) || !r.Finish() {
		t.Fatal(r.SyntaxError())
	}
	if got := string(bytes.Join(texts, []byte("|"))); got != "key|text|plain|more\n" {
		t.Errorf("got %q", got)
	}
	for _, document := range []string{``, `[]`, `["a":1}`, `{"a":}`, `{"a"`, `{a:1}`, `{"a`, `{"\x":1}`} {
		r.Reset([]byte(document))
		if r.Each(func(key []byte) bool {
			if string(key) != "a" {
				t.Errorf("%s has the key %s", document, key)
			}
			return r.Skip()
		}) {
			t.Errorf("%s has members", document)
		}
	}
	r.Reset([]byte("\"\xff\""))
	r.CheckUTF8()
	if r.Skip() && r.Finish() {
		t.Error("it is UTF-8")
	}
	r.Reset([]byte("\"\xff\"")) // and nobody asks
	if !r.Skip() || !r.Finish() {
		t.Error("a Reader that is reset remembers", r.SyntaxError())
	}
}

func TestFirstDuplicate(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, fewKeys, fewKeys + 1, 50} {
		keys := make([][]byte, n)
		for i := range keys {
			keys[i] = []byte{byte(i * 7 % 251)}
		}
		if key := FirstDuplicate(keys); key != nil {
			t.Errorf("%d keys: %q twice", n, key)
		}
		for i := range keys {
			for j := range i {
				twice := append([][]byte(nil), keys...)
				twice[i] = bytes.Clone(twice[j])
				if key := FirstDuplicate(twice); !bytes.Equal(key, keys[j]) || key == nil {
					t.Fatalf("%d keys, %d and %d: %q", n, i, j, key)
				}
			}
		}
	}
}

func TestAppendString(t *testing.T) {
	for text, want := range map[string]string{
		"": `""`, "plain text": `"plain text"`, "\x80\x7f": "\"\uFFFD\x7f\"", "a\"\\\n\r\t\x00\x1fz": `"a\"\\\n\r\t\u0000\u001fz"`, "é😀\u2028<": "\"é😀\u2028<\"",
		"a\xff\xfeb": "\"a\uFFFD\uFFFDb\"", "\xe2\x82": "\"\uFFFD\uFFFD\"", "\uFFFD": "\"\uFFFD\"",
	} {
		if got := string(AppendString([]byte("x"), text)); got != "x"+want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
		if got := string(AppendString([]byte("x"), []byte(text))); got != "x"+want || !utf8.ValidString(got) {
			t.Errorf("%q as bytes: got %s, want %s", text, got, want)
		}
	}
}

// scanner returns a scanner of text.
func scanner(text string, lenient bool) *Scanner[string] {
	s := new(Scanner[string])
	s.Reset(text)
	s.Lenient = lenient
	return s
}
