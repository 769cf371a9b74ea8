// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"
	"testing"

	"github.com/admission-dispatcher/dispatcher/conformance/pair"
	"github.com/admission-dispatcher/dispatcher/conformance/random"
	"github.com/admission-dispatcher/dispatcher/conformance/world"
)

// failure is a Case of one admission whose pair differs, and is not meant to.
type failure struct {
	random.Case
	played world.Played
}

func failureOf(c random.Case, p *world.Played) (failure, bool) {
	if pair.Meant(p.Differences) {
		return failure{}, false
	}
	c.Admissions = c.Admissions[p.Admission : p.Admission+1]
	return failure{c, *p}, true
}

// aspect of the last difference that is not meant: the others may be explained by
// the stand-ins with which that one is left.
func (f *failure) aspect() string {
	for _, d := range slices.Backward(f.played.Differences) {
		if d.Row == "" {
			return d.Aspect
		}
	}
	return ""
}

// mostShown bounds the failures that are made small and shown as stories; with so
// many, a run ends.
const mostShown = 3

// report shows the failures of a batch.
func (r *run) report(t *testing.T) {
	t.Helper()
	seen := map[string]int{}
	for _, f := range r.failing {
		for _, d := range f.played.Differences {
			t.Errorf("seed %d: %s", f.Seed, d)
		}
		if seen[f.aspect()]++; seen[f.aspect()] > 1 || r.shown >= mostShown {
			continue
		}
		r.shown++
		small, err := shrink(t.Context(), r.world, f)
		if err != nil {
			t.Errorf("seed %d is not made smaller: %v", f.Seed, err)
		}
		text, err := small.story()
		if err != nil {
			t.Error(err)
		}
		t.Logf("to play it again: make conformance SEED=%d N=1\nas a story:\n%s", f.Seed, text)
	}
	r.failing = nil
}
