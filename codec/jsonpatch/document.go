// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// Document is a JSON object or array to which patches are applied one after the
// other. It gives what all their operations in one patch would give. What no
// pointer goes through keeps its bytes, and is read once, by Open. A Document
// belongs to one goroutine. It borrows what it was opened with.
type Document struct {
	root   container
	meter  meter
	copied int // bytes copied so far, by all patches
}

// Open reads doc, which must be a JSON object or array, and must not be written as
// long as the Document is in use: what no patch has changed is not copied. Nothing
// that the Document gives out, errors among it, borrows from doc. The error is an
// *Error.
func Open(doc []byte, limits Limits) (*Document, error) {
	if !utf8.Valid(doc) {
		return nil, documentError(reason("the document is not valid UTF-8"))
	}
	d := &Document{meter: newMeter(limits)}
	root, err := parse(unsafe.String(unsafe.SliceData(doc), len(doc)), &d.meter)
	if err != nil {
		return nil, documentError(err)
	}
	d.root = root
	return d, nil
}

// Footprint estimates the memory in bytes that the Document takes besides what it
// borrows.
func (d *Document) Footprint() int { return d.meter.kept }

// Apply applies p, and reports whether the document may be another one since: it
// never reports false for one that says something else than before. After an
// error, an *Error, the Document is of no use.
func (d *Document) Apply(p Patch, limits Limits) (changed bool, err error) {
	a := newApplication(d, p, limits)
	return a.run(p)
}

// Append appends the document to dst, as JSON text. The error, an *Error, says that
// it is beyond limits.
func (d *Document) Append(dst []byte, limits Limits) ([]byte, error) {
	if d.root.depth() > limits.nesting() {
		return dst, documentError(reasonf("the patched document nests deeper than %d", limits.nesting()))
	}
	start := len(dst)
	dst = d.root.append(dst)
	if limits.Result > 0 && len(dst)-start > limits.Result && unescapedLen(dst[start:]) > limits.Result {
		return dst[:start], documentError(limitf("the patched document has more than %d bytes", limits.Result))
	}
	return dst, nil
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

// AppendOutline appends the document with all members of its root but those called
// by the given names null; an array without its elements.
func (d *Document) AppendOutline(dst []byte, names ...string) []byte {
	o, ok := d.root.(*object)
	if !ok {
		return append(dst, "[]"...)
	}
	outline := object{members: make([]member, 0, len(o.members))}
	for _, m := range o.members {
		if !slices.Contains(names, m.name) {
			m.value = node{text: null}
		}
		outline.members = append(outline.members, m)
	}
	return outline.append(dst)
}

// locate returns the container that holds the value at pointer, and the last
// reference token. It fails if the pointer is empty or its parent missing.
func (d *Document) locate(pointer string) (container, string, error) {
	parent, token, ok := split(pointer)
	if !ok {
		return nil, "", reason("the whole document is not a possible target")
	}
	at, err := d.walk(parent)
	return at, token, err
}

// walk returns the container at pointer.
func (d *Document) walk(pointer string) (container, error) {
	at := d.root
	for token, rest, ok := first(pointer); ok; token, rest, ok = first(rest) {
		n, err := at.get(token)
		if err != nil {
			return nil, err
		}
		if n == nil {
			return nil, reason("a part of the path leads to nothing")
		}
		if at, err = n.enter(&d.meter); err != nil {
			return nil, err
		}
		if at == nil {
			return nil, reason("a part of the path is neither an object nor an array")
		}
	}
	return at, nil
}
