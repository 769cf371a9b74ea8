// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"slices"
	"strconv"
)

// array is an open array.
type array struct{ elements []node }

func parseArray(text string, m *meter) (container, error) {
	a := &array{}
	err := readArray(text, func(value string, nesting int) error {
		a.elements = append(a.elements, node{text: value, nesting: nesting})
		return m.spend(len(value) + perMember)
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

func (a *array) get(token string) (*node, error) {
	i, err := place(token, len(a.elements))
	if err != nil {
		return nil, err
	}
	return &a.elements[i], nil
}

func (a *array) add(token string, n node, m *meter) error {
	if token == "-" {
		a.elements = append(a.elements, n)
		return nil
	}
	i, err := place(token, len(a.elements)+1)
	if err != nil {
		return err
	}
	a.elements = slices.Insert(a.elements, i, n)
	return m.spend(len(a.elements) - i)
}

func (a *array) remove(token string, m *meter) error {
	i, err := place(token, len(a.elements))
	if err != nil {
		return err
	}
	a.elements = slices.Delete(a.elements, i, i+1)
	return m.spend(len(a.elements) - i)
}

// place returns the place of an index, which like v4's may be signed, have
// leading zeros, and count from the end, among size places.
func place(token string, size int) (int, error) {
	i, err := strconv.Atoi(token)
	if err != nil {
		return 0, reason("the reference token is not an array index")
	}
	if i < 0 {
		i += size
	}
	if i < 0 || i >= size {
		return 0, reasonf("the index is outside the array of %d elements", size)
	}
	return i, nil
}

func (a *array) append(dst []byte) []byte {
	dst = append(dst, '[')
	for i := range a.elements {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = a.elements[i].append(dst)
	}
	return append(dst, ']')
}

func (a *array) depth() int {
	deepest := 0
	for i := range a.elements {
		deepest = max(deepest, a.elements[i].depth())
	}
	return deepest + 1
}
