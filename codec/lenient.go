// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"strconv"

	"github.com/admission-dispatcher/dispatcher/codec/json"
)

// lenient reads JSON as kube-apiserver does that of an answer, and notes what it does
// not accept and what other readers read differently. Only what is no JSON ends it: what
// follows a defect may deny.
type lenient struct {
	json.Reader
	defects
}

// defects are the first of each kind.
type defects struct {
	badType   string // a value that kube-apiserver cannot decode
	ambiguous string // what readers read differently; kube-apiserver accepts it
}

// found records that kube-apiserver cannot decode a value.
func (d *defects) found(defect string) {
	if d.badType == "" {
		d.badType = defect
	}
}

// readsDifferently records what readers read differently.
func (d *defects) readsDifferently(what string) {
	if d.ambiguous == "" {
		d.ambiguous = what
	}
}

// wrongType records that the value of name is not what it must be, and skips it.
func (l *lenient) wrongType(name, must string) bool {
	l.found(name + " must be " + must)
	return l.Skip()
}

// readText reads a string into dst. Null leaves it as it was, as in Go's decoders.
func (l *lenient) readText(name string, dst *[]byte) (ok bool) {
	switch l.Next() {
	case '"':
		*dst, ok = l.Text()
		return ok
	case 'n':
		return l.Skip()
	}
	return l.wrongType(name, "a string")
}

// readInteger reads an integer into dst, which must hold it, as in Go's decoders.
func (l *lenient) readInteger(name string, dst *int32) bool {
	l.Next()
	start := l.Pos
	if !l.Skip() {
		return false
	}
	literal := l.Data[start:l.Pos]
	if string(literal) == "null" {
		return true
	}
	n, err := strconv.ParseInt(string(literal), 10, 32)
	if err != nil {
		l.found(name + " must be an integer of 32 bits")
		return true
	}
	*dst = int32(n)
	return true
}

// elements reads an array, or null for an empty one.
func (l *lenient) elements(name, must string, read func() bool) bool {
	switch l.Next() {
	case '[':
		return l.Elements(read)
	case 'n':
		return l.Skip()
	}
	return l.wrongType(name, must)
}

// lenientObject reads an object whose members t knows, by the readers of D.
func lenientObject[D any](l *lenient, d D, name string, t *table[D]) bool {
	switch l.Next() {
	case '{':
		return lenientMembers(l, d, t)
	case 'n':
		return l.Skip()
	}
	return l.wrongType(name, "an object")
}

// lenientMembers reads the object at Pos. A field that occurs twice or under another
// spelling is read all the same: it may deny.
func lenientMembers[D any](l *lenient, d D, t *table[D]) bool {
	if !l.Enter() {
		return false
	}
	var seen uint32
	expected, first := 0, true
	for ; l.More(first, '}'); first = false {
		key, ok := l.Key()
		if !ok {
			return false
		}
		i := t.find(key, expected)
		if i < 0 {
			if !lenientUnknown(l, d, t, key) {
				return false
			}
			continue
		}
		if seen&(1<<i) != 0 {
			l.readsDifferently("the answer has the key " + t.fields[i].name + " twice")
		}
		seen |= 1 << i
		expected = i + 1
		if !t.fields[i].read(d) {
			return false
		}
	}
	return l.Fault == ""
}

// lenientUnknown skips the value of a key that t does not have. Of a case variant all
// that matters is whether it denies.
func lenientUnknown[D any](l *lenient, d D, t *table[D], key []byte) bool {
	l.Next()
	start := l.Pos
	if !l.Skip() {
		return false
	}
	i := t.variant(key)
	if i < 0 {
		return true
	}
	l.readsDifferently("the answer has a case variant of the key " + t.fields[i].name)
	if take := t.fields[i].folded; take != nil {
		take(d, l.Data[start:l.Pos])
	}
	return true
}
