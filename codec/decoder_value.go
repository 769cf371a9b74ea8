// SPDX-License-Identifier: Apache-2.0

package codec

// readString reads a string into dst. Null is absent, as for Go's decoders.
func (d *decoder) readString(dst *[]byte) (ok bool) {
	switch d.next() {
	case '"':
		*dst, ok = d.text()
		return ok
	case 'n':
		return d.skip()
	}
	return d.reject("must be a string")
}

// readStrings appends the elements of an array of strings to dst.
func (d *decoder) readStrings(dst *[][]byte) bool {
	switch d.next() {
	case '[':
	case 'n':
		return d.skip()
	default:
		return d.reject("must be an array of strings")
	}
	if !d.enter() {
		return false
	}
	first := true
	for ; d.more(first, ']'); first = false {
		if d.next() != '"' {
			if !d.reject("must be an array of strings") {
				return false
			}
			continue
		}
		text, ok := d.text()
		if !ok || !d.count() {
			return false
		}
		*dst = append(*dst, text)
	}
	return d.fault == ""
}

// readObject reads an object whose members t knows.
func (d *decoder) readObject(t *table[*decoder]) bool {
	switch d.next() {
	case '{':
		return d.members(t)
	case 'n':
		return d.skip()
	}
	return d.reject("must be an object")
}
