// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"slices"
)

// Label is one label of an object. The bytes are borrowed.
type Label struct{ Key, Value []byte }

// Labels are an object's labels, with unique keys. Above sortedLabels entries
// they are sorted by key.
type Labels []Label

// sortedLabels is the number of labels from which on a lookup searches a sorted
// list: an object with a million labels must not make a selector linear.
const sortedLabels = 16

// Lookup returns the value of the label key. The value is borrowed.
func (l Labels) Lookup(key string) (value []byte, ok bool) {
	if len(l) > sortedLabels {
		i, found := slices.BinarySearchFunc(l, key, func(e Label, k string) int {
			return compareKey(e.Key, k)
		})
		if !found {
			return nil, false
		}
		return l[i].Value, true
	}
	for i := range l {
		if string(l[i].Key) == key {
			return l[i].Value, true
		}
	}
	return nil, false
}

func compareKey(key []byte, k string) int {
	switch {
	case string(key) < k:
		return -1
	case string(key) > k:
		return 1
	}
	return 0
}

// normalize sorts l if it is long and returns the first key that occurs twice,
// or nil.
func (l Labels) normalize() (duplicate []byte) {
	if len(l) <= sortedLabels {
		for i := range l {
			for j := range i {
				if bytes.Equal(l[i].Key, l[j].Key) {
					return l[i].Key
				}
			}
		}
		return nil
	}
	slices.SortFunc(l, func(a, b Label) int { return bytes.Compare(a.Key, b.Key) })
	for i := 1; i < len(l); i++ {
		if bytes.Equal(l[i-1].Key, l[i].Key) {
			return l[i].Key
		}
	}
	return nil
}
