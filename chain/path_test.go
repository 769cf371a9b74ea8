// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
)

func TestIsPathSegment(t *testing.T) {
	many := func(n int) string {
		s := "not"
		for i := range n {
			s += fmt.Sprintf(".%010d", i)
		}
		return s
	}
	for segment, want := range map[string]bool{
		"only.0123456789": true, "not.0123456789.abcdefghij": true, many(chain.MaxPathIDs): true,
		"": false, "only": false, "only.": false, "all.0123456789": false, "only.012345678": false, "only.0123456789.": false,
		"only.0123456789.0123456789": false, "only.abcdefghij.0123456789": false, "only.ABCDEFGHIJ": false, "only.012345678z": false, "only.012345678-": false, "not": false, "not.": false,
		many(chain.MaxPathIDs + 1): false,
	} {
		if got := chain.IsPathSegment([]byte(segment)); got != want {
			t.Errorf("%.40q: %v", segment, got)
		}
	}
}

// entries are webhooks w0, w1 ... that list a version of deployments each: two that list
// different ones conflict.
func entries(t interface {
	Helper()
	Fatal(args ...any)
}, versions ...string) (list []*chain.Entry, matchers []*match.Matcher) {
	t.Helper()
	for i, version := range versions {
		m, err := match.Compile(match.Spec{Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{"*"},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{version}, Resources: []string{"deployments"}},
		}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("w%d", i)
		list = append(list, &chain.Entry{ID: hook.ID{Configuration: "c", Name: name}, PathID: chain.PathID(name), Matcher: m})
		matchers = append(matchers, m)
	}
	return list, matchers
}

// ids lists the ids of webhooks as a segment does.
func ids(names ...string) string {
	var all []string
	for _, name := range names {
		all = append(all, chain.PathID(name))
	}
	slices.Sort(all)
	return "." + strings.Join(all, ".")
}

func TestPathsOf(t *testing.T) {
	for _, row := range []struct {
		name     string
		phase    chain.Phase
		versions string
		segments []string
		sets     [][]int
	}{
		{"nothing", chain.Validating, "", nil, nil},
		{"no conflict", chain.Validating, "v1 v1", []string{""}, [][]int{{0, 1}}},
		{"validating webhooks that do not conflict share a path", chain.Validating, "v1 v2 v1 v2 v1", []string{"not" + ids("w1", "w3"), "only" + ids("w1", "w3")}, [][]int{{0, 2, 4}, {1, 3}}},
		{"the main path has most", chain.Validating, "v1 v2 v2", []string{"only" + ids("w0"), "not" + ids("w0")}, [][]int{{0}, {1, 2}}},
		{"of two that have as many it is the first", chain.Validating, "v1 v2", []string{"not" + ids("w1"), "only" + ids("w1")}, [][]int{{0}, {1}}},
		{"nor do mutating ones need more than one", chain.Mutating, "v1 v1 v1", []string{""}, [][]int{{0, 1, 2}}},
		{"mutating webhooks stay in order", chain.Mutating, "v1 v2 v2 v1", []string{"only" + ids("w0"), "not" + ids("w0", "w3"), "only" + ids("w3")}, [][]int{{0}, {1, 2}, {3}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			list, matchers := entries(t, strings.Fields(row.versions)...)
			var segments []string
			var sets [][]int
			for _, p := range chain.PathsOf(list, matchers, row.phase) {
				segments, sets = append(segments, p.Segment), append(sets, p.Positions)
			}
			if diff := cmp.Diff(row.segments, segments); diff != "" {
				t.Errorf("segments (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(row.sets, sets); diff != "" {
				t.Errorf("positions (-want +got):\n%s", diff)
			}
		})
	}
}

// Each webhook is considered on one path, without a conflict there, and a segment says
// by itself which they are: a chain that has other paths of its own understands it.
func TestPathsDivideTheChain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		versions := rapid.SliceOfN(rapid.SampledFrom([]string{"v1", "v2", "v3"}), 1, 8).Draw(t, "versions")
		phase := rapid.SampledFrom([]chain.Phase{chain.Validating, chain.Mutating}).Draw(t, "phase")
		list, matchers := entries(t, versions...)
		positions := map[string]int{}
		for i, w := range list {
			positions[w.PathID] = i
		}
		c := &chain.Chain{Webhooks: list, Index: match.NewIndex(matchers), Paths: chain.PathsOf(list, matchers, phase), Positions: positions}
		stranger := &chain.Chain{Webhooks: list, Index: c.Index, Positions: positions}
		seen := map[int]int{}
		last := -1
		for _, p := range c.Paths {
			if got, current := c.Path([]byte(p.Segment)); got != p || !current {
				t.Fatalf("%q is not the chain's own", p.Segment)
			}
			other, current := stranger.Path([]byte(p.Segment))
			if current != (p.Segment == "") {
				t.Fatalf("%q is a stranger's own: %v", p.Segment, current)
			}
			var all, rest []int
			for i := range list {
				all = append(all, i)
				if p.Considers(i) != other.Considers(i) {
					t.Fatalf("%q considers w%d: %v, to another chain %v", p.Segment, i, p.Considers(i), other.Considers(i))
				}
				if p.Considers(i) {
					rest = append(rest, i)
				}
			}
			if among := p.Among(slices.Clone(all)); !slices.Equal(among, rest) || !slices.Equal(rest, p.Positions) {
				t.Fatalf("among all are %v, at %v, considered %v", among, p.Positions, rest)
			}
			for _, i := range p.Positions {
				seen[i]++
				if c.PathOf(i) != p {
					t.Fatalf("w%d is on another path", i)
				}
				if phase == chain.Mutating && i != last+1 {
					t.Fatalf("w%d comes after w%d", i, last)
				}
				last = i
				for _, j := range p.Positions {
					if matchers[i].ConflictsWith(matchers[j]) {
						t.Fatalf("w%d and w%d conflict", i, j)
					}
				}
			}
		}
		for i := range list {
			if seen[i] != 1 {
				t.Fatalf("w%d is considered on %d paths", i, seen[i])
			}
		}
		if stranger.PathOf(0) != nil {
			t.Fatal("a chain without paths has one")
		}
	})
}

// What an older registration calls: webhooks that are gone are ignored, those that are
// new are considered on the main path alone, and a segment that is none considers all.
func TestPathsOfOlderRegistrations(t *testing.T) {
	list, matchers := entries(t, "v1", "v2")
	c := &chain.Chain{Webhooks: list, Paths: chain.PathsOf(list, matchers, chain.Validating), Positions: map[string]int{list[0].PathID: 0, list[1].PathID: 1}}
	for segment, want := range map[string][]int{
		"only" + ids("gone"):       {},
		"not" + ids("gone"):        {0, 1},
		"only" + ids("w0", "gone"): {0},
		"not" + ids("w0", "gone"):  {1},
		"only" + ids("w0", "w1"):   {0, 1},
		"":                         {0, 1},
		"only.nonsense":            {0, 1},
	} {
		p, current := c.Path([]byte(segment))
		if current {
			t.Errorf("%q is the chain's own", segment)
		}
		if got := p.Among([]int{0, 1}); !slices.Equal(got, want) {
			t.Errorf("%q considers %v, want %v", segment, got, want)
		}
	}
	if _, current := (&chain.Chain{}).Path([]byte("x")); current {
		t.Error("nonsense is an empty chain's own")
	}
}
