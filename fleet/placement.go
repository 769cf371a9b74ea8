// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// DefaultCellLimit is how many clusters a cell should have at most. docs/sizing.md says
// what comes first beyond it.
const DefaultCellLimit = 200

// Placement is a cluster and the cell that it is in; "": in none.
type Placement struct{ Cluster, Cell string }

// Plan is what should change so that each cluster is in a cell and no cell is over its
// limit. It changes nothing by itself.
type Plan struct {
	Cells []CellLoad `json:"cells"`
	Moves []Move     `json:"moves"`
	// Unplaced are clusters for which no cell has room.
	Unplaced []string `json:"unplaced"`
}

// CellLoad is how many clusters a cell has, and will have.
type CellLoad struct {
	Cell   string `json:"cell"`
	Before int    `json:"before"`
	After  int    `json:"after"`
}

// Move is the cell that a cluster should be in.
type Move struct {
	Cluster string `json:"cluster"`
	From    string `json:"from,omitempty"` // "": it was in none
	To      string `json:"to"`
	Reason  string `json:"reason"`
}

// PlanCells proposes a cell for each cluster that is in none, in one that is not among
// cells, or in one that has more than limit. All others stay. Equal placements, in
// whatever order, give equal plans.
//
// A cluster goes to the cell with the highest hash of both names that has room
// (rendezvous hashing), so a cell that is added or taken away moves only clusters that
// come to it or leave it.
func PlanCells(placed []Placement, cells []string, limit int) Plan {
	p := planning{limit: limit, cells: map[string][]string{}, stay: map[string]int{}}
	for _, cell := range cells {
		p.cells[cell] = nil
	}
	placed = slices.SortedFunc(slices.Values(placed), func(a, b Placement) int { return cmp.Compare(a.Cluster, b.Cluster) })
	for _, at := range placed {
		_, known := p.cells[at.Cell]
		switch {
		case at.Cell == "":
			p.homeless = append(p.homeless, Move{Cluster: at.Cluster, Reason: "is in no cell"})
		case !known:
			p.homeless = append(p.homeless, Move{Cluster: at.Cluster, From: at.Cell, Reason: fmt.Sprintf("cell %s is not among the cells", at.Cell)})
		default:
			p.cells[at.Cell] = append(p.cells[at.Cell], at.Cluster)
		}
	}
	return p.plan()
}

// planning is one pass of PlanCells.
type planning struct {
	limit    int
	cells    map[string][]string // the clusters in each
	homeless []Move              // without To
	stay     map[string]int      // how many find no other cell, by the one that they are in
}

func (p *planning) plan() Plan {
	plan := Plan{Moves: []Move{}, Unplaced: []string{}}
	names := slices.Sorted(maps.Keys(p.cells))
	for _, cell := range names {
		plan.Cells = append(plan.Cells, CellLoad{Cell: cell, Before: len(p.cells[cell])})
		p.relieve(cell)
	}
	slices.SortFunc(p.homeless, func(a, b Move) int { return cmp.Compare(a.Cluster, b.Cluster) })
	for _, m := range p.homeless {
		if m.To = p.home(m.Cluster, names); m.To != "" {
			p.cells[m.To] = append(p.cells[m.To], m.Cluster)
			plan.Moves = append(plan.Moves, m)
			continue
		}
		plan.Unplaced = append(plan.Unplaced, m.Cluster)
		p.stay[m.From]++
	}
	for i := range plan.Cells {
		plan.Cells[i].After = len(p.cells[plan.Cells[i].Cell]) + p.stay[plan.Cells[i].Cell]
	}
	return plan
}

// relieve takes those clusters out of a cell over its limit that belong to it least.
func (p *planning) relieve(cell string) {
	clusters := p.cells[cell]
	if len(clusters) <= p.limit {
		return
	}
	slices.SortFunc(clusters, func(a, b string) int {
		return cmp.Or(cmp.Compare(score(cell, b), score(cell, a)), cmp.Compare(a, b))
	})
	for _, cluster := range clusters[p.limit:] {
		p.homeless = append(p.homeless, Move{Cluster: cluster, From: cell, Reason: fmt.Sprintf("cell %s has %d clusters, and its limit is %d", cell, len(clusters), p.limit)})
	}
	p.cells[cell] = clusters[:p.limit:p.limit]
}

// home returns the cell with room to which the cluster belongs most; "": none has.
func (p *planning) home(cluster string, cells []string) (home string) {
	var highest uint64
	for _, cell := range cells {
		if s := score(cell, cluster); len(p.cells[cell]) < p.limit && (home == "" || s > highest) {
			home, highest = cell, s
		}
	}
	return home
}

// score is how much a cluster belongs to a cell.
func score(cell, cluster string) uint64 {
	h := sha256.Sum256([]byte(cell + "\x00" + cluster))
	return binary.BigEndian.Uint64(h[:8])
}
