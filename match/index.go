// SPDX-License-Identifier: Apache-2.0

package match

import (
	"slices"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// Index finds, for a review, the few of many matchers whose rules can select it,
// so that cost follows the number of webhooks that match, not of those that are
// registered. It looks at group and resource only; the rest is the Matcher's.
type Index struct {
	byResource map[string]map[string][]int // group -> resource -> positions
	anyGroup   map[string][]int            // resource -> positions, group "*"
	anyNames   map[string][]int            // group -> positions, resource "*"
	all        []int                       // both "*"
}

// NewIndex indexes matchers by their position.
func NewIndex(matchers []*Matcher) *Index {
	ix := &Index{byResource: map[string]map[string][]int{}, anyGroup: map[string][]int{}, anyNames: map[string][]int{}}
	for position, m := range matchers {
		for i := range m.rules {
			ix.add(position, &m.rules[i])
		}
	}
	return ix
}

func (ix *Index) add(position int, r *rule) {
	for _, p := range r.resources {
		switch {
		case r.groups.any && p.resource == "*":
			ix.all = appendOnce(ix.all, position)
		case r.groups.any:
			ix.anyGroup[p.resource] = appendOnce(ix.anyGroup[p.resource], position)
		default:
			for _, group := range r.groups.names {
				ix.addTo(group, p.resource, position)
			}
		}
	}
}

func (ix *Index) addTo(group, resource string, position int) {
	if resource == "*" {
		ix.anyNames[group] = appendOnce(ix.anyNames[group], position)
		return
	}
	byResource := ix.byResource[group]
	if byResource == nil {
		byResource = map[string][]int{}
		ix.byResource[group] = byResource
	}
	byResource[resource] = appendOnce(byResource[resource], position)
}

// appendOnce appends a position that is never lower than the last one.
func appendOnce(list []int, position int) []int {
	if len(list) > 0 && list[len(list)-1] == position {
		return list
	}
	return append(list, position)
}

// Candidates appends to dst, in ascending order and without duplicates, the
// positions of all matchers that do not answer NoRule to r, and perhaps of a few
// that do.
func (ix *Index) Candidates(dst []int, r *codec.Review) []int {
	start := len(dst)
	dst = ix.appendFor(dst, &r.Resource)
	if !sameResource(&r.Resource, &r.RequestResource) {
		dst = ix.appendFor(dst, &r.RequestResource)
	}
	slices.Sort(dst[start:])
	return dst[:start+len(slices.Compact(dst[start:]))]
}

func sameResource(a, b *codec.GroupVersionResource) bool {
	return string(a.Group) == string(b.Group) && string(a.Resource) == string(b.Resource)
}

func (ix *Index) appendFor(dst []int, q *codec.GroupVersionResource) []int {
	dst = append(dst, ix.byResource[string(q.Group)][string(q.Resource)]...)
	dst = append(dst, ix.anyGroup[string(q.Resource)]...)
	dst = append(dst, ix.anyNames[string(q.Group)]...)
	return append(dst, ix.all...)
}
