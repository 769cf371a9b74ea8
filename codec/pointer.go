// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"strings"
	"unicode"
)

// pointer is where a decoder is in the document, down to the deepest value that
// we have a name for.
type pointer struct {
	names [8]string
	n     int
}

func (p *pointer) push(name string) {
	p.names[p.n] = name
	p.n++
}

func (p *pointer) pop() { p.n-- }

// String returns p as RFC 6901 spells it.
func (p *pointer) String() string {
	var b strings.Builder
	for _, name := range p.names[:p.n] {
		b.WriteByte('/')
		b.WriteString(name)
	}
	return b.String()
}

// maxQuotedKey is the length of the longest key that a pointer quotes: that of
// a label.
const maxQuotedKey = 253 + 1 + 63

// member returns the pointer to the member name, which is one of ours.
func (p *pointer) member(name string) string { return p.String() + "/" + name }

// quoted returns what goes behind a pointer for a key that the sender made up. One
// that no honest client sends is not quoted.
func quoted(key []byte) string {
	if len(key) > maxQuotedKey {
		return ""
	}
	for _, r := range string(key) {
		if !unicode.IsPrint(r) {
			return ""
		}
	}
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(string(key))
}
