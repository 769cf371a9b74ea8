// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"testing"

	"github.com/admission-dispatcher/dispatcher/hook"
)

// The judge knows every cause of the dispatcher, with its code. It shares no code
// with it: the two lists are only compared.
func TestCausesAreTheDispatchers(t *testing.T) {
	for _, c := range hook.Causes() {
		if codes := Cause(c).codes(); !slices.Contains(codes, c.Code()) {
			t.Errorf("%s: the dispatcher denies with %d, the judge expects one of %v", c, c.Code(), codes)
		}
	}
}
