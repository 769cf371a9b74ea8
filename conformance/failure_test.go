// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"testing"

	"github.com/admission-dispatcher/dispatcher/conformance/pair"
	"github.com/admission-dispatcher/dispatcher/conformance/random"
	"github.com/admission-dispatcher/dispatcher/conformance/world"
)

// failure is a Case of one admission whose pair differs, and is not meant to.
type failure struct {
	random.Case
	differences []pair.Difference
}

func failureOf(c random.Case, p *world.Played) (failure, bool) {
	if pair.Meant(p.Differences) {
		return failure{}, false
	}
	c.Admissions = c.Admissions[p.Admission : p.Admission+1]
	return failure{c, p.Differences}, true
}

// report shows the failures of a batch.
func (r *run) report(t *testing.T) {
	const most = 12
	for i, f := range r.failing {
		if i == most {
			t.Logf("and %d more", len(r.failing)-most)
			break
		}
		for _, d := range f.differences {
			t.Errorf("seed %d: %s", f.Seed, d)
		}
		text, _ := json.Marshal(f.Case)
		t.Logf("%s", text)
	}
	r.failing = nil
}
