// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
)

func TestFewest(t *testing.T) {
	inputs := []input{
		{name: "seed again", content: []byte("1"), reaches: []string{"a"}},
		{name: "long", content: []byte("123"), reaches: []string{"b", "c"}},
		{name: "short", content: []byte("12"), reaches: []string{"b", "c"}},
		{name: "part", content: []byte("1"), reaches: []string{"a", "c"}},
		{name: "more", content: []byte("1234"), reaches: []string{"c", "d"}},
	}
	for _, tt := range []struct {
		most int
		want []string
	}{
		{50, []string{"short", "more"}},
		{1, []string{"short"}},
		{0, nil},
	} {
		var got []string
		for _, in := range fewest(inputs, []string{"a"}, tt.most) {
			got = append(got, in.name)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("at most %d: %q, want %q", tt.most, got, tt.want)
		}
	}
}
