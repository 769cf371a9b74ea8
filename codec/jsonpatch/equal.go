// SPDX-License-Identifier: Apache-2.0

package jsonpatch

const differs = reason("the value is another one than tested for")

func (d *Document) test(op *operation) error {
	equal, err := d.holds(op)
	if err == nil && !equal {
		return differs
	}
	return err
}

// holds reports whether the test operation passes.
func (d *Document) holds(op *operation) (bool, error) {
	want := op.node()
	if op.path.value == "" {
		return equal(&node{open: d.root}, &want, &d.meter)
	}
	at, token, err := d.locate(op.path.value)
	if err != nil {
		return false, err
	}
	n, err := at.get(token)
	switch {
	case err != nil:
		return false, err
	case n == nil, n.isNull() && n.origin == given:
		return want.isNull(), nil
	case n.isNull():
		return n.origin == added && want.origin == added, nil
	}
	return equal(n, &want, &d.meter)
}

// equal compares two values: objects in any order, scalars by their spelling. There
// is no error where they are.
func equal(a, b *node, m *meter) (bool, error) {
	inA, err := a.enter(m)
	if err != nil {
		return false, err
	}
	inB, err := b.enter(m)
	if err != nil {
		return false, err
	}
	switch inA := inA.(type) {
	case *object:
		inB, ok := inB.(*object)
		if !ok || inA.size() != inB.size() {
			return false, nil
		}
		return inA.equal(inB, m)
	case *array:
		inB, ok := inB.(*array)
		if !ok || len(inA.elements) != len(inB.elements) {
			return false, nil
		}
		return inA.equal(inB, m)
	}
	return inB == nil && a.text == b.text, nil
}

func (o *object) equal(other *object, m *meter) (bool, error) {
	for i := range o.members {
		a := &o.members[i]
		if a.key == "" {
			continue
		}
		place := other.find(a.name)
		if place < 0 {
			return false, nil
		}
		if a.value.origin != given {
			return false, nil // v4 finds no null equal that a patch has added
		}
		if same, err := equal(&a.value, &other.members[place].value, m); !same {
			return false, err
		}
	}
	return true, nil
}

func (a *array) equal(other *array, m *meter) (bool, error) {
	for i := range a.elements {
		a, b := a.value(i), other.value(i)
		if a.isNull() {
			return false, nil // v4 panics
		}
		if same, err := equal(&a, &b, m); !same {
			return false, err
		}
	}
	return true, nil
}
