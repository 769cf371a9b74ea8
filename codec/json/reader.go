// SPDX-License-Identifier: Apache-2.0

package json

import "unicode/utf8"

// Reader is a Scanner that also says what strings mean. Their text is borrowed from
// the data, or from Scratch where it has escapes.
type Reader struct {
	Scanner[[]byte]
	Scratch []byte

	// broken: the data is not all UTF-8. Up to checked it is, but for what
	// SkipForeign consumed.
	broken  bool
	checked int
}

// Reset makes r a reader of data, which keeps Scratch.
func (r *Reader) Reset(data []byte) {
	r.Scanner.Reset(data)
	r.broken, r.checked = false, 0
}

// Key consumes a member's key and colon and returns the key.
func (r *Reader) Key() (key []byte, ok bool) {
	key, escaped, ok := r.Scanner.Key()
	if escaped && ok {
		return r.unescape(key), true
	}
	return key[:len(key):len(key)], ok
}

// Text consumes the string at Pos and returns it.
func (r *Reader) Text() (text []byte, ok bool) {
	text, escaped, ok := r.Quoted()
	if escaped && ok {
		return r.unescape(text), true
	}
	return text[:len(text):len(text)], ok
}

// unescape returns the text of raw in Scratch. Where that grows, what was handed out
// before stays valid in the previous array.
func (r *Reader) unescape(raw []byte) []byte {
	start := len(r.Scratch)
	r.Scratch = AppendUnescaped(r.Scratch, raw)
	return r.Scratch[start:len(r.Scratch):len(r.Scratch)]
}

// CheckUTF8 notes whether all of the data is UTF-8; Finish fails if not. Once for
// everything is several times faster than string by string.
func (r *Reader) CheckUTF8() { r.broken, r.checked = !utf8.Valid(r.Data), 0 }

// isUTF8 makes sure that the data up to end is UTF-8, where it has to be.
func (r *Reader) isUTF8(end int) bool {
	if !r.broken {
		return true
	}
	if i := r.checked + invalidUTF8(r.Data[r.checked:end]); i < end {
		return r.Fail(i, FaultUTF8)
	}
	return true
}

// invalidUTF8 returns the index of the first byte of data that is not UTF-8.
func invalidUTF8(data []byte) int {
	i := 0
	for i < len(data) {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	return i
}

// SkipForeign is Skip for a value that its readers are to judge: its strings may hold
// what is not Unicode.
func (r *Reader) SkipForeign() bool {
	if !r.isUTF8(r.Pos) {
		return false
	}
	r.Lenient = true
	ok := r.Skip()
	r.Lenient = false
	r.checked = r.Pos
	return ok
}

// Finish makes sure that the document ends here, and that it was UTF-8.
func (r *Reader) Finish() bool { return r.End() && r.isUTF8(len(r.Data)) }

// Each has visit read the value of each member of the object at Pos.
func (r *Reader) Each(visit func(key []byte) bool) bool {
	if r.Next() != '{' || !r.Enter() {
		return false
	}
	for first := true; r.More(first, '}'); first = false {
		key, ok := r.Key()
		if !ok || !visit(key) {
			return false
		}
	}
	return r.Fault == ""
}
