// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"runtime/debug"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/crash"
)

// transaction is what a Hook that can take back what it does was asked.
type transaction struct {
	hook     hook.Undoer
	question hook.Question // its View is retained
}

// begin keeps q if w can take back what it is about to do.
func (a *admission) begin(w *chain.Entry, q hook.Question) {
	undoer, ok := w.Hook.(hook.Undoer)
	if !ok || w.Stage != chain.StageTransactional {
		return
	}
	q.Retain()
	q.Over = nil // which is not kept
	a.transactions = append(a.transactions, transaction{undoer, q})
}

// settleTransactions has Hooks take back what they did, unless v has the admission take
// place. Nobody waits for them.
func (d *Dispatcher) settleTransactions(a *admission, v *Verdict) {
	if len(a.transactions) == 0 {
		return
	}
	takesPlace := v.Response.Allowed && !a.Review.DryRun
	ctx := context.WithoutCancel(a.ctx)
	for _, t := range a.transactions {
		if takesPlace {
			t.question.Release()
			continue
		}
		d.calls.Go(func() {
			defer t.question.Release()
			defer func() {
				if value := recover(); value != nil {
					d.recordPanic(ctx, crash.Text(value), debug.Stack())
				}
			}()
			t.hook.Undo(ctx, t.question)
		})
	}
}
