// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"testing"

	"github.com/admission-dispatcher/dispatcher/codec/json"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pooled"
)

// A pooled scanner has nothing of the object that it read last.
func TestPooledIsEmpty(t *testing.T) {
	s := new(json.Scanner[[]byte])
	pooled.Check(t, s, func() { putBack(s) }, "closers[]") // room that the next object overwrites
	text := new(json.Scanner[string])
	pooled.Check(t, text, func() { putBackText(text) }, "closers[]")
}
