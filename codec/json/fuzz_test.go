// SPDX-License-Identifier: Apache-2.0

package json

import (
	stdjson "encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/admission-dispatcher/dispatcher/internal/harness/fuzz"
)

// scanned are seeds for the scanner, valid and not.
var scanned = []string{
	`{}`, `[]`, `{"a":[1,{"b":null}],"c":"\u00e9\n"}`, ` [ true , false , null ] `, `"`, `"\x"`, `"\u12g4"`, "\"\x01\"",
	`-`, `-0`, `01`, `1.`, `1.5e+10`, `1e`, `.5`, `+1`, `[1,]`, `{"a":1,}`, `{"a"}`, `{1:2}`, `[1 2]`, `{"a":1]`, `nul`, `NaN`, ``, "\ufeff{}",
}

// FuzzScan holds the scanner against encoding/json, which takes half a surrogate pair
// for U+FFFD, and against jsontext, which does not.
func FuzzScan(f *testing.F) {
	for _, text := range scanned {
		f.Add(text)
	}
	fuzz.Run(f, func(t testing.TB, text string) { checkScan(t, text) })
}

// checkScan holds text against the oracles, and reports whether it is JSON.
func checkScan(t testing.TB, text string) bool {
	t.Helper()
	lenient := stdjson.Valid([]byte(text))
	if ours := accepts(text, true); ours != lenient {
		t.Fatalf("valid is %v, encoding/json says %v: %q", ours, lenient, text)
	}
	strict := jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true))
	if ours := accepts(text, false); utf8.ValidString(text) && ours != strict {
		t.Fatalf("strict is %v, jsontext says %v: %q", ours, strict, text)
	}
	if accepts([]byte(text), true) != accepts(text, true) || accepts([]byte(text), false) != accepts(text, false) {
		t.Fatalf("a string is not read as its bytes are: %q", text)
	}
	s := scanner(text, true)
	if s.Next(); (s.Pass() && s.End()) != lenient {
		t.Fatalf("it is skipped %v, but not passed alike: %q", lenient, text)
	}
	return lenient
}

// FuzzText holds what strings and keys mean against encoding/json.
func FuzzText(f *testing.F) {
	for _, text := range []string{"plain", `\u00e9\n\"\\\/\b\f\r\t`, `\ud83d\ude00`, `\ud800x`, `\ud800\ud83d\ude00`, `\udc00`, "\xff", "é"} {
		f.Add(text)
	}
	fuzz.Run(f, func(t testing.TB, text string) {
		checkText(t, `"`+text+`"`)
		checkText(t, string(AppendString(nil, text)))
		for _, name := range []string{"kind", "status"} {
			if got, want := IsVariant(text, name), strings.EqualFold(text, name); got != want {
				t.Fatalf("%q is a variant of %s: %v, want %v", text, name, got, want)
			}
		}
	})
}

// checkText holds the meaning of a quoted string, if it is one.
func checkText(t testing.TB, quoted string) {
	t.Helper()
	var s Scanner[string]
	s.Reset(quoted)
	s.Lenient = true
	raw, escaped, ok := s.Quoted()
	if !ok || !s.End() {
		return
	}
	var want string
	if err := stdjson.Unmarshal([]byte(quoted), &want); err != nil {
		t.Fatalf("%q: %v", quoted, err)
	}
	if got := string(AppendUnescaped(nil, raw)); got != want && utf8.ValidString(quoted) {
		t.Fatalf("%q says %q, want %q", quoted, got, want)
	}
	if !escaped && strings.Contains(raw, `\`) {
		t.Fatalf("%q is said to have no escapes", quoted)
	}
}

// accepts reports whether text is a JSON document.
func accepts[T Text](text T, lenient bool) bool {
	var s Scanner[T]
	s.Reset(text)
	s.Lenient = lenient
	s.Next()
	return s.Skip() && s.End()
}
