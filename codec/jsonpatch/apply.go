// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import "unicode/utf8"

// Apply returns doc, which must be a JSON object or array, with the operations
// applied one after the other, in memory of its own. doc is not written to.
// What no pointer goes through keeps its bytes. The error is an *Error.
func (p Patch) Apply(doc []byte, limits Limits) ([]byte, error) {
	if !utf8.Valid(doc) {
		return nil, documentError(reason("the document is not valid UTF-8"))
	}
	d := document{meter: newMeter(limits.Time), limits: limits}
	root, err := parse(string(doc), d.meter)
	if err != nil {
		return nil, documentError(err)
	}
	d.root = root
	for i := range p.operations {
		if err := d.apply(&p.operations[i]); err != nil {
			return nil, operationError(i, &p.operations[i], err)
		}
	}
	patched, err := d.bytes(len(doc) + p.bytes)
	if err != nil {
		return nil, documentError(err)
	}
	return patched, nil
}

func (d *document) apply(op *operation) error {
	if err := d.meter.check(); err != nil {
		return err
	}
	if !op.path.ok {
		return reason("the operation has no path")
	}
	switch op.kind.value {
	case "add":
		return d.add(op.path.value, op.node())
	case "remove":
		return d.remove(op.path.value)
	case "replace":
		return d.replace(op)
	case "move":
		return d.move(op)
	case "copy":
		return d.copy(op)
	case "test":
		return d.test(op)
	}
	return reason("the operation is unknown")
}

func (d *document) add(path string, n node) error {
	at, token, err := d.locate(path)
	if err != nil {
		return err
	}
	return at.add(token, n, d.meter)
}

func (d *document) remove(path string) error {
	at, token, err := d.locate(path)
	if err != nil {
		return err
	}
	return at.remove(token, d.meter)
}

func (d *document) replace(op *operation) error {
	if op.path.value == "" {
		return d.replaceRoot(op)
	}
	at, token, err := d.locate(op.path.value)
	if err != nil {
		return err
	}
	n, err := at.get(token)
	if err != nil {
		return err
	}
	if n == nil {
		return at.add(token, op.node(), d.meter)
	}
	*n = op.node()
	return nil
}

func (d *document) replaceRoot(op *operation) error {
	n := op.node()
	root, err := n.enter(d.meter)
	if err != nil {
		return err
	}
	if root == nil {
		return reason("the document can only be replaced by an object or an array")
	}
	d.root = root
	return nil
}

func (d *document) move(op *operation) error {
	n, err := d.source(op)
	if err != nil {
		return err
	}
	if n == nil {
		return reason("there is nothing to move")
	}
	moved := *n
	if err := d.remove(op.from.value); err != nil {
		return err
	}
	return d.add(op.path.value, moved)
}

func (d *document) copy(op *operation) error {
	n, err := d.source(op)
	if err != nil {
		return err
	}
	duplicate, err := d.copyOf(n)
	if err != nil {
		return err
	}
	return d.add(op.path.value, duplicate)
}

// source returns the value that the operation moves or copies, nil for a
// missing member.
func (d *document) source(op *operation) (*node, error) {
	if !op.from.ok {
		return nil, reason("the operation has no from")
	}
	at, token, err := d.locate(op.from.value)
	if err != nil {
		return nil, err
	}
	return at.get(token)
}
