// SPDX-License-Identifier: Apache-2.0

package jsonpatch

// node is one value of the document. It is JSON text until a pointer goes
// through it or a test looks into it; then it is open.
type node struct {
	text    string
	open    container // nil as long as text stands for the value
	nesting int       // how deep text nests: 0 for a scalar, 1 for {}
	origin  origin
}

// origin says where a null came from: v4 keeps nulls in three forms, and not
// all of them equal null.
type origin uint8

const (
	given  origin = iota // stood in the text of a document or a larger value
	added                // was the value of an operation
	copied               // is a copy of an added one; v4 takes it for {}
)

// container is an open object or array.
type container interface {
	// get returns the value at a reference token. It is valid until the
	// container changes, and nil for a missing member.
	get(token string) (*node, error)
	add(token string, n node, m *meter) error
	remove(token string, m *meter) error
	// append appends the container's JSON text to dst.
	append(dst []byte) []byte
	depth() int
}

// isNull reports whether the value is null: one that is open has no text.
func (n *node) isNull() bool { return n.text == null }

// enter returns the value as a container, or nil if it is a scalar.
func (n *node) enter(m *meter) (container, error) {
	if n.open != nil || n.nesting == 0 {
		return n.open, nil
	}
	open, err := parse(n.text, m)
	if err != nil {
		return nil, err
	}
	n.open, n.text = open, ""
	return open, nil
}

// parse reads one level of the object or array text.
func parse(text string, m *meter) (container, error) {
	if text != "" && text[0] == '[' {
		return parseArray(text, m)
	}
	return parseObject(text, m)
}

func (n *node) append(dst []byte) []byte {
	if n.open == nil {
		return append(dst, n.text...)
	}
	return n.open.append(dst)
}

func (n *node) depth() int {
	if n.open == nil {
		return n.nesting
	}
	return n.open.depth()
}
