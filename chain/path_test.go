// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"fmt"
	"testing"

	"github.com/admission-dispatcher/dispatcher/chain"
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
