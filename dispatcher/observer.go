// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"time"
)

// Record is what there is to tell of one admission.
type Record struct {
	Request
	Verdict *Verdict
	Start   time.Time
	Elapsed time.Duration
}

// Observer is told of every admission once it is decided, on the goroutine that
// answers it: it must be quick, and must not block. The Record with everything
// that hangs off it is borrowed until Observe returns.
type Observer interface {
	Observe(ctx context.Context, r *Record)
}
