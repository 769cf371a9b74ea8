// SPDX-License-Identifier: Apache-2.0

package codec

import "strconv"

// readText reads a string into dst. Null leaves it as it was, as in Go's decoders.
func (a *answer) readText(name string, dst *[]byte) (ok bool) {
	switch a.next() {
	case '"':
		*dst, ok = a.text()
		return ok
	case 'n':
		return a.skip()
	}
	return a.wrongType(name, "a string")
}

// readObject reads an object whose members t knows.
func (a *answer) readObject(name string, t *table[*answer]) bool {
	switch a.next() {
	case '{':
		return a.members(t)
	case 'n':
		return a.skip()
	}
	return a.wrongType(name, "an object")
}

// readInteger reads an integer into dst, which must hold it, as in Go's decoders.
func (a *answer) readInteger(name string, dst *int32) bool {
	a.next()
	start := a.pos
	if !a.skip() {
		return false
	}
	literal := a.data[start:a.pos]
	if string(literal) == "null" {
		return true
	}
	n, err := strconv.ParseInt(string(literal), 10, 32)
	if err != nil {
		a.found(name + " must be an integer of 32 bits")
		return true
	}
	*dst = int32(n)
	return true
}

// elements reads an array, or null for an empty one.
func (a *answer) elements(name, must string, read func() bool) bool {
	switch a.next() {
	case '[':
	case 'n':
		return a.skip()
	default:
		return a.wrongType(name, must)
	}
	if !a.enter() {
		return false
	}
	first := true
	for ; a.more(first, ']'); first = false {
		if !read() {
			return false
		}
	}
	return a.fault == ""
}
