// SPDX-License-Identifier: Apache-2.0

package match

import (
	"bytes"
	"slices"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// Index finds, for a review, the few of many matchers whose rules can select it,
// so that cost follows the number of webhooks that match, not of those that are
// registered. It looks at operation, group, resource and subresource; the rest is
// the Matcher's. It is read-only and safe for concurrent use.
type Index struct{ operations [codec.Connect + 1]placeTable }

// place is what one resource pattern of a rule selects in one group; each part
// may be "*".
type place struct{ group, resource, sub string }

// placeTable lists, for each place, the positions of the matchers that have it in
// a rule, in ascending order.
type placeTable struct {
	positions map[place][]int
	shapes    [shapes]bool // which shapes of places there are
}

// A shape says which parts of a place are "*".
const (
	anyGroup = 1 << iota
	anyResource
	anySub
	shapes
)

// NewIndex indexes matchers by their position.
func NewIndex(matchers []*Matcher) *Index {
	ix := &Index{}
	for o := range ix.operations {
		ix.operations[o].positions = map[place][]int{}
	}
	for position, m := range matchers {
		for i := range m.rules {
			ix.add(position, &m.rules[i])
		}
	}
	return ix
}

func (ix *Index) add(position int, r *rule) {
	groups := r.groups.names
	if r.groups.any {
		groups = []string{wildcard}
	}
	for o, selected := range r.operations {
		if !selected {
			continue
		}
		for _, group := range groups {
			for _, p := range r.resources {
				ix.operations[o].add(place{group, p.resource, p.sub}, position)
			}
		}
		for _, e := range r.equivalents {
			ix.operations[o].add(place{e.group, e.pattern.resource, e.pattern.sub}, position)
		}
	}
}

// add adds a position that is never lower than the last one.
func (t *placeTable) add(p place, position int) {
	t.shapes[p.shape()] = true
	list := t.positions[p]
	if len(list) == 0 || list[len(list)-1] != position {
		t.positions[p] = append(list, position)
	}
}

func (p *place) shape() (shape int) {
	if p.group == wildcard {
		shape |= anyGroup
	}
	if p.resource == wildcard {
		shape |= anyResource
	}
	if p.sub == wildcard {
		shape |= anySub
	}
	return shape
}

// Candidates appends to dst, in ascending order and without duplicates, the
// positions of all matchers that do not answer NoRule to r, and perhaps of a few
// that do. It allocates only where dst is too short.
func (ix *Index) Candidates(dst []int, r *codec.Review) []int {
	start := len(dst)
	t := &ix.operations[r.Operation]
	dst = t.appendFor(dst, &r.Resource, r.SubResource)
	if !samePlace(r) {
		dst = t.appendFor(dst, &r.RequestResource, r.RequestSubResource)
	}
	slices.Sort(dst[start:])
	return dst[:start+len(slices.Compact(dst[start:]))]
}

// samePlace reports whether the user sent what was matched, but for the version.
func samePlace(r *codec.Review) bool {
	return bytes.Equal(r.Resource.Group, r.RequestResource.Group) &&
		bytes.Equal(r.Resource.Resource, r.RequestResource.Resource) &&
		bytes.Equal(r.SubResource, r.RequestSubResource)
}

func (t *placeTable) appendFor(dst []int, q *codec.GroupVersionResource, subresource []byte) []int {
	for shape, used := range t.shapes {
		if !used {
			continue
		}
		group, resource, sub := q.Group, q.Resource, subresource
		if shape&anyGroup != 0 {
			group = []byte(wildcard)
		}
		if shape&anyResource != 0 {
			resource = []byte(wildcard)
		}
		if shape&anySub != 0 {
			sub = []byte(wildcard)
		}
		dst = append(dst, t.positions[place{string(group), string(resource), string(sub)}]...)
	}
	return dst
}
