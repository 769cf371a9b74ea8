// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"

	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pooled"
)

// A pooled Verdict has nothing of the admission that it was of.
func TestPooledIsEmpty(t *testing.T) {
	v := new(dispatcher.Verdict)
	pooled.Check(t, v, func() { answerOf(v) })
}
