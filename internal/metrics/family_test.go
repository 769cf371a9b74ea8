// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/metrics"
)

// Every value of a closed set has a word of its own.
func TestLabels(t *testing.T) {
	for _, f := range metrics.Families() {
		for _, l := range f.Labels {
			seen := map[string]bool{"": true, "unknown": true}
			for _, word := range l.Values {
				if seen[word] {
					t.Errorf("%s: %s has the value %q, which is none or is there twice", f.Name, l.Name, word)
				}
				seen[word] = true
			}
		}
	}
}
