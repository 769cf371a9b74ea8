// SPDX-License-Identifier: Apache-2.0

package webhookserver

import (
	"encoding/json"
	"strings"
)

// Operation is one operation of a JSON patch (RFC 6902), made by Add, Replace or
// Remove.
type Operation struct {
	op    string
	path  string
	value any
}

// Add sets the member of an object at the pointer, or inserts before an item of
// an array; "-" as the last token appends. What contains it must be there: a Pod
// without labels gets them all, as one map.
func Add(pointer string, value any) Operation {
	return Operation{op: "add", path: pointer, value: value}
}

// Replace sets what is at the pointer, which must be there.
func Replace(pointer string, value any) Operation {
	return Operation{op: "replace", path: pointer, value: value}
}

// Remove removes what is at the pointer, which must be there.
func Remove(pointer string) Operation {
	return Operation{op: "remove", path: pointer}
}

// MarshalJSON writes the operation as RFC 6902 has it. Only remove has no value:
// null is one.
func (o Operation) MarshalJSON() ([]byte, error) {
	if o.op == "remove" {
		return json.Marshal(map[string]any{"op": o.op, "path": o.path})
	}
	return json.Marshal(map[string]any{"op": o.op, "path": o.path, "value": o.value})
}

// Pointer joins names of fields and indexes to a JSON pointer (RFC 6901) and
// escapes them, so that they may contain slashes as keys of labels do.
// Without tokens it is the whole object.
func Pointer(tokens ...string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var pointer strings.Builder
	for _, token := range tokens {
		pointer.WriteByte('/')
		_, _ = escape.WriteString(&pointer, token)
	}
	return pointer.String()
}
