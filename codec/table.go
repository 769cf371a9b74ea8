// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// table is what we know of one JSON object: its fields in the order in which
// kube-apiserver writes them. D is who reads them.
type table[D any] struct {
	fields []field[D]
	// unique refuses any duplicate key, not only those of fields.
	unique bool
	// foreign: what it has besides belongs to the webhooks.
	foreign bool
	// folded is told the value of a case variant of the field of that name.
	folded map[string]func(D, []byte)
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
		if mayFold(key, name) && bytes.EqualFold(key, []byte(name)) {
			return i
		}
	}
	return -1
}

// mayFold is a cheap way to say no: a variant has at most three bytes for a
// letter, and the same first letter unless that is not ASCII.
func mayFold(key []byte, name string) bool {
	return len(key) >= len(name) && len(key) <= 3*len(name) && (key[0]|0x20 == name[0] || key[0] >= utf8.RuneSelf)
}

// fewKeys is up to how many keys comparing all pairs is faster than sorting.
const fewKeys = 16

// firstDuplicate returns a key that occurs twice, or nil. It reorders keys.
func firstDuplicate(keys [][]byte) []byte {
	if len(keys) <= fewKeys {
		for i := range keys {
			for _, key := range keys[:i] {
				if bytes.Equal(keys[i], key) {
					return key
				}
			}
		}
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
