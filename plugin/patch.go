// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"strconv"
	"strings"
)

// Operation is one operation of a JSON patch (RFC 6902). A Value is written as JSON; null is
// json.RawMessage("null").
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitzero"`
}

// End is behind the last element of a list, in a path.
const End = -1

// Add sets the field at the path, or inserts into a list. What is above it must be there.
func Add(value any, path ...any) Operation { return Operation{"add", Pointer(path...), value} }

// Replace replaces what is at the path.
func Replace(value any, path ...any) Operation { return Operation{"replace", Pointer(path...), value} }

// Remove removes what is at the path.
func Remove(path ...any) Operation { return Operation{Op: "remove", Path: Pointer(path...)} }

// Pointer is the JSON pointer (RFC 6901) to a path of strings, which are names of fields and
// keys of maps, and of ints, which are positions in lists.
func Pointer(path ...any) string {
	var b strings.Builder
	for _, part := range path {
		b.WriteByte('/')
		switch part := part.(type) {
		case int:
			if part == End {
				b.WriteByte('-')
			} else {
				b.WriteString(strconv.Itoa(part))
			}
		case string:
			b.WriteString(escaper.Replace(part))
		}
	}
	return b.String()
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")
