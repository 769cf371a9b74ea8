// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// document is a document while operations are applied to it.
type document struct {
	root   container
	meter  *meter
	limits Limits
	copied int // bytes copied so far
}

// locate returns the container that holds the value at pointer, and the last
// reference token. It fails if the pointer is empty or its parent missing.
func (d *document) locate(pointer string) (container, string, error) {
	parent, token, ok := split(pointer)
	if !ok {
		return nil, "", reason("the whole document is not a possible target")
	}
	at, err := d.walk(parent)
	return at, token, err
}

// walk returns the container at pointer.
func (d *document) walk(pointer string) (container, error) {
	at := d.root
	for token, rest, ok := first(pointer); ok; token, rest, ok = first(rest) {
		n, err := at.get(token)
		if err != nil {
			return nil, err
		}
		if n == nil {
			return nil, reason("a part of the path leads to nothing")
		}
		if at, err = n.enter(d.meter); err != nil {
			return nil, err
		}
		if at == nil {
			return nil, reason("a part of the path is neither an object nor an array")
		}
	}
	return at, nil
}

// copyOf returns a copy of n, or of null if n is missing.
func (d *document) copyOf(n *node) (node, error) {
	switch {
	case n == nil:
		return node{text: null}, nil
	case n.isNull() && n.origin != given:
		return node{text: null, origin: copied}, d.charge(len(null))
	}
	// v4 escapes what it copies as in HTML, and a later test sees the difference.
	var text bytes.Buffer
	json.HTMLEscape(&text, n.append(nil))
	return node{text: text.String(), nesting: n.depth()}, d.charge(text.Len())
}

// charge counts size bytes against the limit for copying.
func (d *document) charge(size int) error {
	d.copied += size
	if d.limits.CopyBytes > 0 && d.copied > d.limits.CopyBytes {
		return limitf("the patch copies more than %d bytes", d.limits.CopyBytes)
	}
	return d.meter.spend(size)
}

// bytes returns the document as JSON text, in a buffer of its own for which
// capacity is a guess.
func (d *document) bytes(capacity int) ([]byte, error) {
	if d.root.depth() > maxNesting {
		return nil, reasonf("the patched document nests deeper than %d", maxNesting)
	}
	text := d.root.append(make([]byte, 0, capacity))
	if d.limits.Result > 0 && len(text) > d.limits.Result && unescapedLen(text) > d.limits.Result {
		return nil, limitf("the patched document has more than %d bytes", d.limits.Result)
	}
	return text, nil
}

// unescapedLen returns how many bytes text has with every character written as itself.
// kube-apiserver writes "<", ">" and "&" as six bytes each, so that a review may have
// many times the bytes of the object in it.
func unescapedLen(text []byte) (n int) {
	const short, long = len(`\n`), len(`\u003c`)
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 || i+short > len(text) {
			return n + len(text)
		}
		n += i
		if text = text[i:]; text[1] != 'u' || len(text) < long {
			n++
			text = text[short:]
			continue
		}
		code, _ := strconv.ParseUint(string(text[short:long]), 16, 32) // it was scanned
		if size := utf8.RuneLen(rune(code)); size > 0 {
			n += size
		} else { // half of a pair, which is a character of four bytes
			n += utf8.UTFMax / 2
		}
		text = text[long:]
	}
}
