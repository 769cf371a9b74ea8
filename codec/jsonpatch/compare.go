// SPDX-License-Identifier: Apache-2.0

package jsonpatch

// comparison compares two values: members in any order, scalars by their spelling.
type comparison struct {
	meter *meter
	// tests: the values are opened, and compared as v4 does, to which some nulls equal
	// nothing. Otherwise both stay as they are, and what would cost more than the meter
	// has left is not looked into.
	tests bool
}

// equal reports whether a and b say the same. There is no error where they do.
func (c comparison) equal(a, b *node) (bool, error) {
	if !c.tests && a.open == nil && b.open == nil && a.text == b.text {
		err := c.meter.spend(1)
		return err == nil, err
	}
	inA, err := c.enter(a)
	if err != nil {
		return false, err
	}
	inB, err := c.enter(b)
	if err != nil {
		return false, err
	}
	switch inA := inA.(type) {
	case *object:
		if inB, ok := inB.(*object); ok && inA.size() == inB.size() {
			return c.members(inA, inB)
		}
		return false, nil
	case *array:
		if inB, ok := inB.(*array); ok && len(inA.elements) == len(inB.elements) {
			return c.elements(inA, inB)
		}
		return false, nil
	}
	return inB == nil && a.text == b.text, nil
}

// enter returns the value as a container, or nil if it is a scalar.
func (c comparison) enter(n *node) (container, error) {
	if c.tests {
		return n.enter(c.meter)
	}
	if n.open == nil && n.nesting > 0 && len(n.text) > c.meter.left {
		return nil, tooCostly
	}
	closed := *n
	return closed.enter(c.meter)
}

func (c comparison) members(a, b *object) (bool, error) {
	for i := range a.members {
		m := &a.members[i]
		if m.key == "" {
			continue
		}
		place := b.find(m.name)
		if place < 0 || c.tests && m.value.origin != given { // v4 finds no null equal that a patch has added
			return false, nil
		}
		if same, err := c.equal(&m.value, &b.members[place].value); !same {
			return false, err
		}
	}
	return true, nil
}

func (c comparison) elements(a, b *array) (bool, error) {
	for i := range a.elements {
		a, b := a.value(i), b.value(i)
		if c.tests && a.isNull() {
			return false, nil // v4 panics
		}
		if same, err := c.equal(&a, &b); !same {
			return false, err
		}
	}
	return true, nil
}
