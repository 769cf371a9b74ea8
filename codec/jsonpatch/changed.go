// SPDX-License-Identifier: Apache-2.0

package jsonpatch

// comparing returns the meter for telling whether p changes something: the work of
// a few passes over the values that p brings. What takes more counts as a change.
func comparing(p Patch) meter {
	return meter{bounded: true, left: 8*p.bytes + stride}
}

// note notes a change if differs says that there is one. It is costly, and not
// asked once something has changed.
func (d *Document) note(differs func() bool) { d.changed = d.changed || differs() }

// has reports whether the member that token names is n already. An array has
// nothing: what is added to it moves the rest.
func (d *Document) has(at container, token string, n *node) bool {
	o, ok := at.(*object)
	if !ok {
		return false
	}
	i := o.find(token)
	return i >= 0 && d.same(&o.members[i].value, n)
}

// same reports whether two values say the same: members in any order, scalars by
// their spelling. It leaves both as they are, and reports false where finding out
// would cost too much.
func (d *Document) same(a, b *node) bool {
	same, _ := alike(a, b, &d.comparing) // an error is no
	return same
}

func alike(a, b *node, m *meter) (bool, error) {
	if a.open == nil && b.open == nil && a.text == b.text {
		err := m.spend(1)
		return err == nil, err
	}
	inA, err := a.view(m)
	if err != nil {
		return false, err
	}
	inB, err := b.view(m)
	if err != nil {
		return false, err
	}
	switch inA := inA.(type) {
	case *object:
		inB, ok := inB.(*object)
		if !ok || inA.size() != inB.size() {
			return false, nil
		}
		return inA.alike(inB, m)
	case *array:
		inB, ok := inB.(*array)
		if !ok || len(inA.elements) != len(inB.elements) {
			return false, nil
		}
		return inA.alike(inB, m)
	}
	return false, nil // scalars of one spelling are alike above
}

// view returns the value as a container as enter does, but leaves n closed.
func (n *node) view(m *meter) (container, error) {
	if n.open == nil && n.nesting > 0 && len(n.text) > m.left {
		return nil, tooCostly
	}
	closed := *n
	return closed.enter(m)
}

func (o *object) alike(other *object, m *meter) (bool, error) {
	for i := range o.members {
		a := &o.members[i]
		if a.key == "" {
			continue
		}
		place := other.find(a.name)
		if place < 0 {
			return false, nil
		}
		if same, err := alike(&a.value, &other.members[place].value, m); !same {
			return false, err
		}
	}
	return true, nil
}

func (a *array) alike(other *array, m *meter) (bool, error) {
	for i := range a.elements {
		a, b := a.value(i), other.value(i)
		if same, err := alike(&a, &b, m); !same {
			return false, err
		}
	}
	return true, nil
}
