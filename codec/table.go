// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"slices"
)

// table is what we know of one JSON object: its fields in the order in which
// kube-apiserver writes them. D is who reads them.
type table[D any] struct {
	fields []field[D]
	// unique refuses any duplicate key, not only those of fields.
	unique bool
}

// field is a key and what reads its value, which starts at or behind pos.
type field[D any] struct {
	name string
	read func(D) bool
}

// find returns the index of key, or -1. The search starts at from: the index of
// the expected field.
func (t *table[D]) find(key []byte, from int) int {
	for i := from; i < len(t.fields); i++ {
		if string(key) == t.fields[i].name {
			return i
		}
	}
	for i := range min(from, len(t.fields)) {
		if string(key) == t.fields[i].name {
			return i
		}
	}
	return -1
}

// variant returns the index of the field that a reader which ignores case would
// take key for, or -1. Such readers fold as encoding/json does: the long s and
// the Kelvin sign are variants too.
func (t *table[D]) variant(key []byte) int {
	for i := range t.fields {
		name := t.fields[i].name
		if len(key) >= len(name) && len(key) <= 3*len(name) && bytes.EqualFold(key, []byte(name)) {
			return i
		}
	}
	return -1
}

// firstDuplicate returns a key that occurs twice, or nil. It reorders keys.
func firstDuplicate(keys [][]byte) []byte {
	if len(keys) < 2 {
		return nil
	}
	slices.SortFunc(keys, bytes.Compare)
	for i := 1; i < len(keys); i++ {
		if bytes.Equal(keys[i-1], keys[i]) {
			return keys[i]
		}
	}
	return nil
}
