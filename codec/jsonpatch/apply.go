// SPDX-License-Identifier: Apache-2.0

package jsonpatch

// Apply applies p, and reports whether the document may be another one since: it
// never reports false for one that says something else than before. After an
// error, an *Error, the Document is of no use.
func (d *Document) Apply(p Patch, limits Limits) (changed bool, err error) {
	d.meter.restart(limits)
	d.limits = limits
	d.comparing, d.changed = comparing(p), false
	for i := range p.operations {
		if err := d.apply(&p.operations[i]); err != nil {
			return false, operationError(i, &p.operations[i], err)
		}
	}
	return d.changed, nil
}

func (d *Document) apply(op *operation) error {
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

func (d *Document) add(path string, n node) error {
	at, token, err := d.locate(path)
	if err != nil {
		return err
	}
	d.note(func() bool { return !d.has(at, token, &n) })
	return at.add(token, n, &d.meter)
}

func (d *Document) remove(path string) error {
	at, token, err := d.locate(path)
	if err != nil {
		return err
	}
	d.changed = true
	return at.remove(token, &d.meter)
}

func (d *Document) replace(op *operation) error {
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
		d.changed = true
		return at.add(token, op.node(), &d.meter)
	}
	value := op.node()
	d.note(func() bool { return !d.same(n, &value) })
	*n = value
	return nil
}

func (d *Document) replaceRoot(op *operation) error {
	n := op.node()
	d.note(func() bool { return !d.same(&node{open: d.root}, &n) })
	root, err := n.enter(&d.meter)
	if err != nil {
		return err
	}
	if root == nil {
		return reason("the document can only be replaced by an object or an array")
	}
	d.root = root
	return nil
}

func (d *Document) move(op *operation) error {
	n, err := d.source(op)
	if err != nil {
		return err
	}
	if n == nil {
		return reason("there is nothing to move")
	}
	moved, before := *n, d.changed
	if err := d.remove(op.from.value); err != nil {
		return err
	}
	if err := d.add(op.path.value, moved); err != nil {
		return err
	}
	if op.path.value == op.from.value {
		d.changed = before // it stands where it stood
	}
	return nil
}

func (d *Document) copy(op *operation) error {
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
func (d *Document) source(op *operation) (*node, error) {
	if !op.from.ok {
		return nil, reason("the operation has no from")
	}
	at, token, err := d.locate(op.from.value)
	if err != nil {
		return nil, err
	}
	return at.get(token)
}
