// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// equalJSON reports whether two JSON texts say the same: members in any order,
// numbers by their spelling. What cannot be read equals nothing else. It is
// costly unless the bytes are equal, and only for questions that are rare.
func equalJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := decodeJSON(a)
	y, errY := decodeJSON(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func decodeJSON(raw []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return v, d.Decode(&v)
}
