// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"slices"
	"strings"
)

// variant is one of several ways in which a row is played: as "F6/expired".
type variant struct {
	name string
	set  func(r *row)
}

// played returns the row in each of its variants, or itself.
func (r *row) played() []row {
	var all []row
	for _, v := range r.variants {
		one := *r
		one.id, one.what, one.variants = r.id+"/"+v.name, r.what+": "+v.name, nil
		v.set(&one)
		all = append(all, one)
	}
	for _, id := range r.amid {
		other := matrix[slices.IndexFunc(matrix, func(o row) bool { return o.id == id })]
		other.id, other.what = r.id+"/"+id, r.what+" amid "+id
		other.within, other.then, other.exempts, other.check = r.within, 0, true, nil
		all = append(all, other)
	}
	if len(all) == 0 {
		return []row{*r}
	}
	return all
}

// wanted reports whether a row, or a variant, is to be played.
func wanted(id string) bool {
	if only != "" {
		return named(id)
	}
	return every || slices.Contains(short, id)
}

// named reports whether a row, or a variant, is the one that was asked for by name:
// "F6" is every variant of it.
func named(id string) bool {
	whole, _, _ := strings.Cut(id, "/")
	return strings.EqualFold(only, id) || strings.EqualFold(only, whole)
}
