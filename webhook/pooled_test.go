// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"testing"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pooled"
)

// A pooled Message has nothing of the call that it was for.
func TestPooledIsEmpty(t *testing.T) {
	m := new(Message)
	pooled.Check(t, m, func() {
		m.question.View = hook.NewView(hook.Source{Review: codec.AcquireReview()})
		m.Release()
	})
}
