// SPDX-License-Identifier: Apache-2.0

package codec

import "github.com/admission-dispatcher/dispatcher/codec/json"

// table is what we know of one JSON object: its fields in the order in which
// kube-apiserver writes them. D is who reads them.
type table[D any] struct {
	fields []field[D]
	// unique refuses any duplicate key, not only those of fields.
	unique bool
	// foreign: what it has besides belongs to the webhooks.
	foreign bool
}

// field is a key and what reads its value, which starts at or behind Pos.
type field[D any] struct {
	name   string
	read   func(D) bool
	folded func(D, []byte) // is told the value of a case variant; nil: nobody is
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
// take key for, or -1.
func (t *table[D]) variant(key []byte) int {
	for i := range t.fields {
		if json.IsVariant(key, t.fields[i].name) {
			return i
		}
	}
	return -1
}
