// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"math"
	"slices"
	"strconv"
)

// array is an open array. An element that nobody has touched is a range of text,
// which is small and without pointers: there can be more than a million.
type array struct {
	text     string
	elements []element
	nodes    []*node
}

// element is text[start:end] of its array, or nodes[start] if end is 0.
type element struct{ start, end, nesting int32 }

func parseArray(text string, m *meter) (container, error) {
	if len(text) > math.MaxInt32 {
		return nil, reason("the array is larger than 2 GiB")
	}
	a := &array{text: text}
	err := readArray(text, func(start, end, nesting int) error {
		a.elements = append(a.elements, element{int32(start), int32(end), int32(nesting)})
		return m.spend(end - start + perElement)
	})
	if err != nil {
		return nil, err
	}
	m.kept += perOpenElement * cap(a.elements)
	return a, nil
}

// perOpenElement is the size of an element, in bytes.
const perOpenElement = 12

// keep makes n an element.
func (a *array) keep(n node) element {
	a.nodes = append(a.nodes, &n)
	return element{start: int32(len(a.nodes) - 1)}
}

// value returns the element at i, as it is now.
func (a *array) value(i int) node {
	e := a.elements[i]
	if e.end == 0 {
		return *a.nodes[e.start]
	}
	return node{text: a.text[e.start:e.end], nesting: int(e.nesting)}
}

func (a *array) get(token string) (*node, error) {
	i, err := place(token, len(a.elements))
	if err != nil {
		return nil, err
	}
	e := &a.elements[i]
	if e.end != 0 {
		*e = a.keep(a.value(i))
	}
	return a.nodes[e.start], nil
}

func (a *array) add(token string, n node, m *meter) error {
	if token == "-" {
		a.elements = append(a.elements, a.keep(n))
		return nil
	}
	i, err := place(token, len(a.elements)+1)
	if err != nil {
		return err
	}
	a.elements = slices.Insert(a.elements, i, a.keep(n))
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
		n := a.value(i)
		dst = n.append(dst)
	}
	return append(dst, ']')
}

func (a *array) depth() int {
	deepest := 0
	for i := range a.elements {
		n := a.value(i)
		deepest = max(deepest, n.depth())
	}
	return deepest + 1
}
