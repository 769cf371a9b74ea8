// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/fleet"
)

func clusters(n int, cell string) (list []fleet.Placement) {
	for i := range n {
		list = append(list, fleet.Placement{Cluster: fmt.Sprintf("cluster-%04d", i), Cell: cell})
	}
	return list
}

// apply returns the placements after a plan.
func apply(placed []fleet.Placement, p fleet.Plan) []fleet.Placement {
	next := slices.Clone(placed)
	for i := range next {
		for _, m := range p.Moves {
			if m.Cluster == next[i].Cluster {
				next[i].Cell = m.To
			}
		}
	}
	return next
}

func countsOf(placed []fleet.Placement) map[string]int {
	counts := map[string]int{}
	for _, at := range placed {
		counts[at.Cell]++
	}
	return counts
}

// Clusters without a cell are spread over the cells that there are.
func TestCellsAreFilled(t *testing.T) {
	cells := []string{"a", "b", "c", "d"}
	placed := clusters(400, "")
	counts := countsOf(apply(placed, fleet.PlanCells(placed, cells, 200)))
	for _, cell := range cells {
		if n := counts[cell]; n < 70 || n > 130 {
			t.Errorf("cell %s has %d of 400 clusters", cell, n)
		}
	}
}

// A cell that is added takes what comes to it later; one that is taken away gives its
// clusters to the others, and nothing else moves.
func TestCellsComeAndGo(t *testing.T) {
	placed := clusters(300, "")
	placed = apply(placed, fleet.PlanCells(placed, []string{"a", "b", "c"}, 200))
	if p := fleet.PlanCells(placed, []string{"a", "b", "c", "d"}, 200); len(p.Moves) > 0 {
		t.Errorf("a new cell moves %d clusters", len(p.Moves))
	}
	p := fleet.PlanCells(placed, []string{"a", "b"}, 200)
	if len(p.Moves) != countsOf(placed)["c"] || len(p.Unplaced) > 0 {
		t.Errorf("%d moves, %d had been in the cell that goes; unplaced: %v", len(p.Moves), countsOf(placed)["c"], p.Unplaced)
	}
	for _, m := range p.Moves {
		if m.From != "c" || m.Reason != "cell c is not among the cells" {
			t.Errorf("%+v", m)
		}
	}
}

func TestCellOverItsLimit(t *testing.T) {
	placed := clusters(12, "a")
	p := fleet.PlanCells(placed, []string{"a", "b"}, 10)
	if len(p.Moves) != 2 || p.Moves[0].From != "a" || p.Moves[0].To != "b" || p.Moves[0].Reason != "cell a has 12 clusters, and its limit is 10" {
		t.Errorf("%+v", p)
	}
	if want := []fleet.CellLoad{{"a", 12, 10}, {"b", 0, 2}}; !slices.Equal(p.Cells, want) {
		t.Errorf("%+v, want %+v", p.Cells, want)
	}
}

// A full cell gives away the clusters that belong to it least: most of those would have
// gone to another cell in the first place.
func TestWhoLeavesAFullCell(t *testing.T) {
	cells := []string{"a", "b"}
	elsewhere := 0
	at := apply(clusters(200, ""), fleet.PlanCells(clusters(200, ""), cells, 200))
	leaving := fleet.PlanCells(clusters(200, "a"), cells, 100).Moves
	for _, m := range leaving {
		if slices.Contains(at, fleet.Placement{Cluster: m.Cluster, Cell: "b"}) {
			elsewhere++
		}
	}
	if len(leaving) != 100 || elsewhere < 60 {
		t.Errorf("%d leave, of which %d belong elsewhere", len(leaving), elsewhere)
	}
}

// Where there is no room, a cluster stays where it is, and the plan says so.
func TestCellsWithoutRoom(t *testing.T) {
	placed := append(clusters(12, "a"), fleet.Placement{Cluster: "new"})
	p := fleet.PlanCells(placed, []string{"a"}, 10)
	if len(p.Moves) != 0 || len(p.Unplaced) != 3 || p.Cells[0].After != 12 {
		t.Errorf("%+v", p)
	}
}

// Whatever there is, and in whatever order: the plan keeps to the limit, is the same
// twice, and is done when it is done. Clusters that are well where they are stay.
func TestPlanHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d", "e"}
		cells := names[:rapid.IntRange(1, 4).Draw(t, "cells")]
		limit := rapid.IntRange(1, 12).Draw(t, "limit")
		placed := clusters(rapid.IntRange(0, 40).Draw(t, "clusters"), "")
		for i := range placed {
			if n := rapid.IntRange(0, len(names)).Draw(t, "cell"); n < len(names) {
				placed[i].Cell = names[n]
			}
		}
		before := countsOf(placed)
		p := fleet.PlanCells(placed, cells, limit)
		after := apply(placed, p)
		for _, load := range p.Cells {
			if load.Before != before[load.Cell] || load.After != countsOf(after)[load.Cell] {
				t.Fatalf("%+v, and it has %d and then %d", load, before[load.Cell], countsOf(after)[load.Cell])
			}
			if load.After > limit && len(p.Unplaced) == 0 {
				t.Fatalf("cell %s has %d, the limit is %d", load.Cell, load.After, limit)
			}
		}
		left := map[string]int{}
		for _, m := range p.Moves {
			if !slices.Contains(cells, m.To) || m.To == m.From {
				t.Fatalf("%+v", m)
			}
			left[m.From]++
		}
		for _, cell := range cells {
			if left[cell] > max(before[cell]-limit, 0) {
				t.Fatalf("%d leave cell %s, which had %d of %d", left[cell], cell, before[cell], limit)
			}
		}
		if again := fleet.PlanCells(after, cells, limit); len(again.Moves) > 0 {
			t.Fatalf("once it is done there is more to do: %+v", again.Moves)
		}
		shuffled := slices.Clone(placed)
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if other := fleet.PlanCells(shuffled, cells, limit); fmt.Sprint(other) != fmt.Sprint(p) {
			t.Fatalf("in another order it is another plan: %+v and %+v", p, other)
		}
	})
}
