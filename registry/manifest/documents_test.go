// SPDX-License-Identifier: Apache-2.0

package manifest

import "testing"

// A document counts one for each value and one for each byte of its texts and keys, and
// may count as much as there is left.
func TestExpansion(t *testing.T) {
	for _, c := range []struct {
		tree any
		size int
	}{
		{nil, 1},
		{7, 1},
		{"abc", 4},
		{[]any{}, 1},
		{[]any{nil, nil, "ab"}, 6},
		{map[any]any{"key": "v"}, 6},
		{map[any]any{"k": []any{map[any]any{"abc": 1.5}}}, 8},
	} {
		for left, fits := range map[int]bool{c.size: true, c.size - 1: false} {
			before := left
			if _, err := stringKeyed(c.tree, &left); (err == nil) != fits {
				t.Errorf("%v in %d: %v", c.tree, before, err)
			}
			if fits && left != 0 {
				t.Errorf("%v counts %d, want %d", c.tree, before-left, c.size)
			}
		}
	}
}

// Of several mistakes in one document always the same one is reported: a problem that
// changes from look to look would be logged at each.
func TestOneMistakeOfSeveral(t *testing.T) {
	for range 20 {
		_, errs := documents("a.yaml", []byte("b: {1: a}\na: {3: a, 2: a, true: a}\nc: 1"))
		if len(errs) != 1 || errs[0].Error() != "key 2 is not a string; quote it" {
			t.Fatal(errs)
		}
	}
}
