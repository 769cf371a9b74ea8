// SPDX-License-Identifier: Apache-2.0

package excerpt

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestShort(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"empty":              {"", ""},
		"short":              {"shöp", "shöp"},
		"ascii":              {strings.Repeat("a", 300), strings.Repeat("a", 256)},
		"a rune at the cut":  {"a" + strings.Repeat("é", 200), "a" + strings.Repeat("é", 127)},
		"a rune at its end":  {strings.Repeat("é", 200), strings.Repeat("é", 128)},
		"four bytes":         {strings.Repeat("a", 253) + "😀😀", strings.Repeat("a", 253)},
		"not UTF-8":          {"a\xff\xfeb", "a?b"},
		"half a rune":        {"a\xc3", "a?"},
		"continuations only": {strings.Repeat("\x80", 300), ""},
	} {
		if got := Of([]byte(c.in)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestCutTo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, n := rapid.String().Draw(t, "in"), rapid.IntRange(0, 40).Draw(t, "n")
		got := Cut(in, n)
		if len(got) > n || !utf8.ValidString(got) || !strings.HasPrefix(in, got) {
			t.Fatalf("cutTo(%q, %d) = %q", in, n, got)
		}
		if len(got) < min(len(in), n-utf8.UTFMax+1) {
			t.Fatalf("cutTo(%q, %d) = %q cuts too much", in, n, got)
		}
	})
}
