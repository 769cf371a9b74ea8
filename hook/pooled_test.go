// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pooled"
)

// A pooled View has nothing of the review that it was of.
func TestPooledIsEmpty(t *testing.T) {
	v := new(View)
	pooled.Check(t, v, v.Release)
}
