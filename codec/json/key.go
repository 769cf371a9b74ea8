// SPDX-License-Identifier: Apache-2.0

package json

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// IsVariant reports whether a reader that ignores case would take key for name. Such
// readers fold as encoding/json does: the long s and the Kelvin sign are variants too.
// name begins with a lower-case letter of ASCII, and is a variant of itself.
func IsVariant[T Text](key T, name string) bool {
	// A cheap way to say no: a variant has at most three bytes for a letter, and the
	// same first letter unless that is not ASCII.
	return len(key) >= len(name) && len(key) <= 3*len(name) && (key[0]|0x20 == name[0] || key[0] >= utf8.RuneSelf) &&
		strings.EqualFold(string(key), name)
}

// fewKeys is up to how many keys comparing all pairs is faster than sorting.
const fewKeys = 16

// FirstDuplicate returns a key that occurs twice, or nil. It reorders keys.
func FirstDuplicate(keys [][]byte) []byte {
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
