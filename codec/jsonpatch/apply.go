// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"bytes"
	"encoding/json"
)

// application is one Apply under way.
type application struct {
	*Document
	limits    Limits
	explicit  bool  // Patch.Explicit
	comparing meter // what telling whether something changed may still cost
	changed   bool
}

func newApplication(d *Document, p Patch, limits Limits) application {
	d.meter.restart(limits)
	return application{Document: d, limits: limits, explicit: p.explicit, comparing: meter{bounded: true, left: 8*p.bytes + stride}}
}

func (a *application) run(p Patch) (changed bool, err error) {
	for i := range p.operations {
		if err := a.apply(&p.operations[i]); err != nil {
			return false, operationError(i, &p.operations[i], err)
		}
	}
	return a.changed, nil
}

func (a *application) apply(op *operation) error {
	if err := a.meter.check(); err != nil {
		return err
	}
	if !op.path.ok {
		return reason("the operation has no path")
	}
	switch op.kind.value {
	case "add":
		return a.add(op.path.value, op.node())
	case "remove":
		return a.remove(op.path.value)
	case "replace":
		return a.replace(op)
	case "move":
		return a.move(op)
	case "copy":
		return a.copy(op)
	case "test":
		return a.test(op)
	}
	return reason("the operation is unknown")
}

func (a *application) add(path string, n node) error {
	at, token, err := a.locate(path)
	if err != nil {
		return err
	}
	a.changed = a.changed || !a.has(at, token, &n)
	return at.add(token, n, &a.meter)
}

func (a *application) remove(path string) error {
	at, token, err := a.locate(path)
	if err != nil {
		return err
	}
	a.changed = true
	return at.remove(token, &a.meter)
}

func (a *application) replace(op *operation) error {
	if op.path.value == "" {
		return a.replaceRoot(op)
	}
	at, token, err := a.locate(op.path.value)
	if err != nil {
		return err
	}
	n, err := at.get(token)
	if err != nil {
		return err
	}
	if n == nil {
		a.changed = true
		return at.add(token, op.node(), &a.meter)
	}
	value := op.node()
	a.changed = a.changed || !a.same(n, &value)
	*n = value
	return nil
}

func (a *application) replaceRoot(op *operation) error {
	n := op.node()
	a.changed = a.changed || !a.same(&node{open: a.root}, &n)
	root, err := n.enter(&a.meter)
	if err != nil {
		return err
	}
	if root == nil {
		return reason("the document can only be replaced by an object or an array")
	}
	a.root = root
	return nil
}

func (a *application) move(op *operation) error {
	n, err := a.source(op)
	if err != nil {
		return err
	}
	if n == nil {
		return reason("there is nothing to move")
	}
	moved, before := *n, a.changed
	if err := a.remove(op.from.value); err != nil {
		return err
	}
	if err := a.add(op.path.value, moved); err != nil {
		return err
	}
	if op.path.value == op.from.value {
		a.changed = before // it stands where it stood
	}
	return nil
}

func (a *application) copy(op *operation) error {
	n, err := a.source(op)
	if err != nil {
		return err
	}
	duplicate, err := a.copyOf(n)
	if err != nil {
		return err
	}
	return a.add(op.path.value, duplicate)
}

// source returns the value that the operation moves or copies, nil for a
// missing member.
func (a *application) source(op *operation) (*node, error) {
	if !op.from.ok {
		return nil, reason("the operation has no from")
	}
	at, token, err := a.locate(op.from.value)
	if err != nil {
		return nil, err
	}
	return at.get(token)
}

func (a *application) test(op *operation) error {
	holds, err := a.holds(op)
	if err == nil && !holds {
		return untrue
	}
	return err
}

// holds reports whether the test operation passes.
func (a *application) holds(op *operation) (bool, error) {
	want, tested := op.node(), comparison{meter: &a.meter, tests: true}
	if op.path.value == "" {
		return tested.equal(&node{open: a.root}, &want)
	}
	at, token, err := a.locate(op.path.value)
	if err != nil {
		return false, err
	}
	n, err := at.get(token)
	switch {
	case err != nil:
		return false, err
	case n == nil, n.isNull() && n.origin == given:
		return want.isNull() && !a.explicit, nil
	case n.isNull():
		return n.origin == added && want.origin == added, nil
	}
	return tested.equal(n, &want)
}

// has reports whether the member that token names is n already. An array has
// nothing: what is added to it moves the rest.
func (a *application) has(at container, token string, n *node) bool {
	o, ok := at.(*object)
	if !ok {
		return false
	}
	i := o.find(token)
	return i >= 0 && a.same(&o.members[i].value, n)
}

// same reports whether two values say the same. It leaves both as they are, and reports
// false where finding out would cost more than a few passes over the values that the
// patch brings.
func (a *application) same(x, y *node) bool {
	same, _ := comparison{meter: &a.comparing}.equal(x, y) // an error is no
	return same
}

// copyOf returns a copy of n, or of null if n is missing.
func (a *application) copyOf(n *node) (node, error) {
	switch {
	case n == nil:
		return node{text: null}, nil
	case n.origin != given: // a null
		return node{text: null, origin: copied}, a.charge(len(null))
	}
	// v4 escapes what it copies as in HTML, and a later test sees the difference.
	var text bytes.Buffer
	json.HTMLEscape(&text, n.append(nil))
	return node{text: text.String(), nesting: n.depth()}, a.charge(text.Len())
}

// charge counts size bytes against the limit for copying.
func (a *application) charge(size int) error {
	a.copied += size
	if a.limits.CopyBytes > 0 && a.copied > a.limits.CopyBytes {
		return limitf("the patch copies more than %d bytes", a.limits.CopyBytes)
	}
	return a.meter.spend(size)
}
