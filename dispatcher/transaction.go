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
func (d *Dispatcher) begin(a *admission, w *chain.Entry, q hook.Question) error {
	if _, ok := w.Hook.(hook.Undoer); !ok || w.Stage != chain.StageTransactional {
		return nil
	}
	done, err := d.capacity.Undo(q.Cluster)
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
func (d *Dispatcher) settleTransactions(a *admission, v *Verdict) {
	if len(a.transactions) == 0 {
		return
	}
	ctx, takesPlace := context.WithoutCancel(a.ctx), v.Response.Allowed && !a.Review.DryRun
	if takesPlace && a.Delivery != nil {
		d.calls.Add(1)
		*a.Delivery = Delivery{d, ctx, a.transactions}
		return
	}
	d.settle(ctx, a.transactions, takesPlace)
}

func (d *Dispatcher) settle(ctx context.Context, transactions []transaction, takesPlace bool) {
	for _, t := range transactions {
		if takesPlace {
			t.end()
		} else {
			d.undo(ctx, t)
		}
	}
}

// undo has a Hook take back what it did. It does not wait, and Wait waits for undoTime at
// most: a Hook that hangs keeps its slot, a goroutine and a View.
func (d *Dispatcher) undo(ctx context.Context, t transaction) {
	attrs := append(outcomeAttrs(t.entry, nil), slog.String("cluster", t.question.Cluster))
	ctx, cancel := context.WithTimeout(ctx, undoTime)
	d.calls.Add(1)
	context.AfterFunc(ctx, func() {
		defer d.calls.Done()
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			d.log.LogAttrs(ctx, slog.LevelError, "undo has not ended in time", attrs...)
		}
	})
	go func() {
		defer cancel()
		defer t.end()
		defer func() {
			if value := recover(); value != nil {
				d.log.LogAttrs(ctx, slog.LevelError, "panic in undo", append(attrs,
					slog.String("panic", crash.Text(value)), slog.String("stack", string(debug.Stack())))...)
			}
		}()
		t.entry.Hook.(hook.Undoer).Undo(ctx, t.question)
	}()
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
	open.dispatcher.settle(open.ctx, open.transactions, delivered)
}
