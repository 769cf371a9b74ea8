// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/crash"
)

// undoTime is how long the dispatcher waits for an Undo, also at its end: that fits into
// the 5 s which whoever stops the process allows beyond the longest admission.
const undoTime = 3 * time.Second

// transaction is what a Hook that can take back what it does was asked.
type transaction struct {
	entry    *chain.Entry
	question hook.Question // its View is retained
	done     func()        // gives back the room to undo it
}

// begin keeps q if w can take back what it is about to do, with the room to do that. While
// too many of the cluster's hang there is none, and the call has failed.
func (a *admission) begin(w *chain.Entry, q hook.Question) error {
	if _, ok := w.Hook.(hook.Undoer); !ok || w.Stage != chain.StageTransactional {
		return nil
	}
	done, err := a.dispatcher.capacity.Undo(q.Cluster)
	if err != nil {
		return &hook.CallError{Cause: hook.Shed, Err: err}
	}
	q.Retain()
	a.transactions = append(a.transactions, transaction{w, q, done})
	return nil
}

// end gives back what begin took.
func (t *transaction) end() {
	t.done()
	t.question.Release()
}

// settleTransactions has Hooks take back what they did, unless v has the admission take
// place. Where it does, its Delivery says whether the caller knows.
func (a *admission) settleTransactions(v *Verdict) {
	if len(a.transactions) == 0 {
		return
	}
	open := Delivery{a.dispatcher, context.WithoutCancel(a.ctx), a.transactions}
	takesPlace := v.Response.Allowed && !a.Review.DryRun
	if takesPlace && a.Delivery != nil {
		open.dispatcher.calls.Add(1)
		*a.Delivery = open
		return
	}
	open.end(takesPlace)
}

// Delivery is what is open of an admission until it is known whether the caller got the
// Verdict: what Hooks of the transactional stage have done. Its zero value is ready for
// an admission, and so is one that has been settled. It is not safe for concurrent use.
type Delivery struct {
	dispatcher   *Dispatcher
	ctx          context.Context
	transactions []transaction
}

// IsOpen reports whether anything depends on the delivery.
func (d *Delivery) IsOpen() bool { return len(d.transactions) > 0 }

// Settle says whether the caller got the Verdict; if not, Hooks take back what they did.
// It does not wait for them. Only the first call after a Dispatch counts.
func (d *Delivery) Settle(delivered bool) {
	if !d.IsOpen() {
		return
	}
	open := *d
	*d = Delivery{}
	defer open.dispatcher.calls.Done()
	open.end(delivered)
}

// end ends the transactions: those of an admission that does not take place are undone.
func (d *Delivery) end(takesPlace bool) {
	for _, t := range d.transactions {
		if takesPlace {
			t.end()
		} else {
			d.undo(t)
		}
	}
}

// undo has a Hook take back what it did. It does not wait, and Wait waits for undoTime at
// most: a Hook that hangs keeps its slot, a goroutine and a View.
func (d *Delivery) undo(t transaction) {
	calls, log := &d.dispatcher.calls, d.dispatcher.recorder.log
	attrs := append(outcomeAttrs(t.entry, nil), slog.String("cluster", t.question.Cluster))
	ctx, cancel := context.WithTimeout(d.ctx, undoTime)
	calls.Add(1)
	context.AfterFunc(ctx, func() {
		defer calls.Done()
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			log.LogAttrs(ctx, slog.LevelError, "undo has not ended in time", attrs...)
		}
	})
	go func() {
		defer cancel()
		defer t.end()
		defer func() {
			if value := recover(); value != nil {
				log.LogAttrs(ctx, slog.LevelError, "panic in undo", append(attrs,
					slog.String("panic", crash.Text(value)), slog.String("stack", string(debug.Stack())))...)
			}
		}()
		t.entry.Hook.(hook.Undoer).Undo(ctx, t.question)
	}()
}
