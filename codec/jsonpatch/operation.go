// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import "github.com/admission-dispatcher/dispatcher/codec/json"

// operation is one operation as decoded. What it lacks or has of a wrong type
// fails when it is applied.
type operation struct {
	kind, path, from field
	value            string // JSON text, empty if there is none
	nesting          int    // of value
}

// field is a field that should be a string.
type field struct {
	value   string
	present bool
	ok      bool // it is present and a string
}

// decode fills op from its JSON. It ignores unknown fields, and refuses pointers
// of more than depth tokens unless depth is 0.
func (op *operation) decode(text string, depth int) error {
	if text == null {
		return nil // v4 reads it as an operation without fields
	}
	if err := readObject(text, op.set); err != nil {
		return err
	}
	if depth > 0 && max(tokens(op.path.value), tokens(op.from.value)) > depth {
		return limitf("the pointer has more than %d reference tokens", depth)
	}
	return nil
}

func (op *operation) set(key, value string, nesting int) error {
	switch name := unquote(key); name {
	case "op":
		return op.kind.set(name, value)
	case "path":
		return op.path.set(name, value)
	case "from":
		return op.from.set(name, value)
	case "value":
		if op.value != "" {
			return duplicate()
		}
		op.value, op.nesting = value, nesting
		return nil
	default:
		return refuseVariant(name)
	}
}

func (f *field) set(name, value string) error {
	if f.present {
		return duplicate()
	}
	f.present = true
	if value[0] == '"' {
		f.value, f.ok = unquote(value), true
	}
	return nil
}

// refuseVariant refuses a name that some JSON readers take for a field of an
// operation and v4 does not.
func refuseVariant(name string) error {
	for _, known := range [...]string{"op", "path", "from", "value"} {
		if json.IsVariant(name, known) {
			return reasonf("a field is a case variant of %q", known)
		}
	}
	return nil
}

func duplicate() error { return reason("a key occurs more than once") }

// node returns the operation's value as a node of the document.
func (op *operation) node() node {
	switch op.value {
	case "":
		return node{text: null}
	case null:
		return node{text: null, origin: added}
	}
	return node{text: op.value, nesting: op.nesting}
}
