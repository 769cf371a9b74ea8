// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"

	"github.com/admission-dispatcher/dispatcher/match"
)

// A Path is one URL of a phase with the webhooks that are considered on it. A
// cluster calls several where webhooks conflict: the API server decides once per
// registered entry in which version and group it sends a request, and webhooks that
// list different ones cannot share an entry.
//
// The segment behind the phase says itself which webhooks these are, so that an
// older registration stays correct after every change, and after a restart:
//
//	(none)                all
//	only.<id>.<id>...     these; an id that no longer exists is ignored
//	not.<id>.<id>...      all but these; so a webhook that was added since is
//	                      considered once, on the cluster's main path
type Path struct {
	Segment   string
	Positions []int // in the chain, in ascending order; nil in what an older registration calls
	considers []bool
}

const (
	only = "only"
	not  = "not"

	// idLength is that of a webhook's id: 50 bits of a hash over its names. Two
	// webhooks of one id are a problem of the configuration.
	idLength = 10
	// MaxPathIDs bounds a segment, in ids: a URL is at most 8 KiB.
	MaxPathIDs = 512
)

var idEncoding = base32.HexEncoding.WithPadding(base32.NoPadding)

// PathID returns the id of the webhook of this name, with its configuration's.
func PathID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return strings.ToLower(idEncoding.EncodeToString(sum[:])[:idLength])
}

// IsPathSegment reports whether b is a segment in its only spelling: ids of fixed
// length, in ascending order.
func IsPathSegment(b []byte) bool {
	kind, ids, _ := bytes.Cut(b, []byte("."))
	if string(kind) != only && string(kind) != not {
		return false
	}
	var before []byte
	for n := 0; ; n++ {
		id, rest, more := bytes.Cut(ids, []byte("."))
		if n == MaxPathIDs || !isPathID(id) || bytes.Compare(before, id) >= 0 {
			return false
		}
		if !more {
			return true
		}
		before, ids = id, rest
	}
}

func isPathID(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'v') {
			return false
		}
	}
	return len(b) == idLength
}

// Considers reports whether the webhook at a position of the chain is considered. A
// nil Path considers all.
func (p *Path) Considers(position int) bool { return p == nil || p.considers[position] }

// Among keeps, in place, those of the positions that are considered.
func (p *Path) Among(positions []int) []int {
	if p == nil || p.Segment == "" {
		return positions
	}
	return slices.DeleteFunc(positions, func(i int) bool { return !p.considers[i] })
}

// Path returns what the segment of a URL stands for, and whether it is one of the
// chain's own: a cluster that calls another one applies an older registration.
// Segments that are no IsPathSegment consider all. It allocates only for segments
// that are not the chain's.
func (c *Chain) Path(segment []byte) (p *Path, current bool) {
	for _, p := range c.Paths {
		if p.Segment == string(segment) {
			return p, true
		}
	}
	return c.otherPath(segment), len(c.Paths) == 0 && len(segment) == 0
}

func (c *Chain) otherPath(segment []byte) *Path {
	if !IsPathSegment(segment) {
		return nil
	}
	p := &Path{Segment: string(segment), considers: make([]bool, len(c.Webhooks))}
	kind, ids, _ := strings.Cut(p.Segment, ".")
	for i := range p.considers {
		p.considers[i] = kind == not
	}
	for id := range strings.SplitSeq(ids, ".") {
		if i, ok := c.Positions[id]; ok {
			p.considers[i] = kind == only
		}
	}
	return p
}

// PathOf returns the Path on which the webhook at a position is considered.
func (c *Chain) PathOf(position int) *Path {
	for _, p := range c.Paths {
		if p.considers[position] {
			return p
		}
	}
	return nil
}

// parts divides the webhooks at positions 0 to n-1 into as few sets as it finds
// without a conflict inside of one. Mutating webhooks stay in order: theirs are
// consecutive.
func parts(matchers []*match.Matcher, phase Phase) [][]int {
	var sets [][]int
	for i, m := range matchers {
		fits := func(set []int) bool {
			return !slices.ContainsFunc(set, func(j int) bool { return m.ConflictsWith(matchers[j]) })
		}
		at := -1
		if phase == Mutating {
			if last := len(sets) - 1; last >= 0 && fits(sets[last]) {
				at = last
			}
		} else {
			at = slices.IndexFunc(sets, fits)
		}
		if at < 0 {
			sets = append(sets, []int{i})
		} else {
			sets[at] = append(sets[at], i)
		}
	}
	return sets
}

// PathsOf returns the Paths of a chain, in the order in which the API server calls
// them. The one with most webhooks is the main one.
func PathsOf(webhooks []*Entry, matchers []*match.Matcher, phase Phase) []*Path {
	sets := parts(matchers, phase)
	main := 0
	for i, set := range sets {
		if len(set) > len(sets[main]) {
			main = i
		}
	}
	paths := make([]*Path, len(sets))
	for i, set := range sets {
		p := &Path{Positions: set, considers: make([]bool, len(webhooks))}
		for _, position := range set {
			p.considers[position] = true
		}
		switch {
		case len(sets) == 1:
		case i == main:
			p.Segment = not + idsOf(webhooks, func(position int) bool { return !p.considers[position] })
		default:
			p.Segment = only + idsOf(webhooks, p.Considers)
		}
		paths[i] = p
	}
	return paths
}

// idsOf lists the ids of some webhooks, each behind a dot.
func idsOf(webhooks []*Entry, which func(position int) bool) string {
	var ids []string
	for i, w := range webhooks {
		if which(i) {
			ids = append(ids, w.PathID)
		}
	}
	slices.Sort(ids)
	return "." + strings.Join(ids, ".")
}
