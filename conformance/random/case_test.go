// SPDX-License-Identifier: Apache-2.0

package random_test

import (
	"encoding/json"
	"testing"

	"github.com/admission-dispatcher/dispatcher/conformance/random"
)

func text(t *testing.T, c random.Case) string {
	t.Helper()
	out, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// A seed must give the same Case on every machine, or it could not be played again.
func TestSameSeedSameCase(t *testing.T) {
	for seed := range uint64(200) {
		c := random.New(seed)
		if text(t, c) != text(t, random.New(seed)) {
			t.Fatalf("seed %d gives two cases", seed)
		}
		if text(t, c) != text(t, c.Clone()) {
			t.Fatalf("seed %d: a clone is another case", seed)
		}
	}
}

// Making a Case smaller must come to an end.
func TestSmallerEnds(t *testing.T) {
	for seed := range uint64(4) {
		c := random.New(seed)
		steps := 0
		for smaller := c.Smaller(); len(smaller) > 0; smaller = c.Smaller() {
			if steps++; steps > 500 {
				t.Fatalf("seed %d does not become small", seed)
			}
			c = smaller[0]
		}
	}
}
