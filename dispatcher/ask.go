// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/crash"
)

// invocation is one Entry that wants the review, and what its Hook answers. It may
// outlive the admission.
type invocation struct {
	webhook  *chain.Entry
	position int
	round    int

	batch    *batch
	begin    time.Time   // of the call
	waiting  bool        // started, and without an Outcome
	answered atomic.Bool // the Hook has notified
	span     trace.Span  // nil where the admission is not sampled

	// The answer, once it has arrived.
	resp    codec.Response
	err     error
	elapsed time.Duration
}

// prepare says why the Hook of w cannot be asked at all, and takes a slot for the
// admission.
func (a *admission) prepare(w *chain.Entry) error {
	if a.Review.DryRun && !w.SideEffects.SupportsDryRun() {
		return refuseDryRun(w)
	}
	if time.Until(a.Deadline) < leastTime {
		return &hook.CallError{Cause: hook.NoTimeLeft, Err: errors.New("no time left for the call before the caller's deadline")}
	}
	if w.Mode == chain.Shadow { // those never wait, nor hold anybody up
		return nil
	}
	return a.admit()
}

// question is what the Hook of inv is asked, if following others are to be asked after
// it.
func (a *admission) question(inv *invocation, following int, impatience time.Duration) hook.Question {
	w := inv.webhook
	denies, _ := a.failurePolicy(w)
	q := hook.Question{
		View:       a.view,
		Round:      inv.round,
		Repeatable: w.SideEffects.Repeatable(a.Review.DryRun),
		Shadow:     w.Mode == chain.Shadow,
		Wait:       denies == Failed && w.Mode == chain.Enforce,
	}
	q.Deadline, q.Timeout = a.until(w, following, impatience)
	return q
}

// ask asks the Hook of inv, before following others are asked.
func (d *Dispatcher) ask(a *admission, inv *invocation, following int) {
	q := a.question(inv, following, d.impatience)
	a.begin(inv.webhook, q)
	if q.Shadow {
		d.shadow(a, inv, q)
		return
	}
	inv.waiting = true
	d.start(a.ctx, inv, q)
}

// start asks the Hook of inv, which may outlive the admission; the answer arrives in
// its batch. A panic is a CallError; the process lives.
func (d *Dispatcher) start(ctx context.Context, inv *invocation, q hook.Question) {
	inv.begin = time.Now()
	q.Over = &inv.batch.over
	inv.batch.users.Add(1)
	d.calls.Add(1)
	defer func() {
		if r := recover(); r != nil {
			inv.Receive(codec.Response{}, &hook.CallError{
				Cause: hook.Panic, Elapsed: time.Since(inv.begin), Err: fmt.Errorf("panic while calling: %s", crash.Text(r)), Stack: debug.Stack(),
			})
		}
	}()
	inv.webhook.Hook.Ask(inv.startSpan(ctx), q, inv)
}

// Receive implements hook.Receiver. Of a Hook that answers twice the first answer
// counts.
func (inv *invocation) Receive(resp codec.Response, err error) {
	if inv.answered.Swap(true) {
		return
	}
	inv.resp, inv.err, inv.elapsed = resp, err, time.Since(inv.begin)
	b := inv.batch
	defer b.calls.Done()
	b.answers <- inv
	b.release()
}

// errUnheard is the CallError of a Hook that has not answered by the deadline.
var errUnheard = errors.New("no answer before the caller's deadline")

// join gives all that have been asked their Outcome: those who answer until the grace
// after the first denial is over, or the deadline has come, by their answers.
func (d *Dispatcher) join(a *admission) {
	waiting := 0
	for _, inv := range a.batch.list {
		if inv.waiting {
			waiting++
		}
	}
	if waiting == 0 {
		return
	}
	begin := time.Now()
	timer := a.batch.alarm(time.Until(a.Deadline))
	defer timer.Stop()
	denied := false
	for waiting > 0 {
		select {
		case inv := <-a.batch.answers:
			if !inv.waiting {
				continue // of those who were given up on
			}
			waiting--
			if a.hear(inv).Denies() && !denied {
				denied = true
				timer.Reset(min(d.grace, time.Until(a.Deadline)))
			}
		case <-timer.C:
			denied = a.hearPresent(denied)
			a.settleUnheard(denied, time.Since(begin))
			return
		}
	}
}

// hearPresent settles the answers that are there although time is up: a process that
// stood still must not take them for missing. It reports whether anybody denied.
func (a *admission) hearPresent(denied bool) bool {
	for {
		select {
		case inv := <-a.batch.answers:
			denied = inv.waiting && a.hear(inv).Denies() || denied
		default:
			return denied
		}
	}
}

// settleUnheard gives those that were not heard their Outcome: abandoned after
// somebody's denial, timed out otherwise.
func (a *admission) settleUnheard(denied bool, elapsed time.Duration) {
	for _, inv := range a.batch.list {
		late := inv.waiting
		inv.waiting = false
		switch {
		case !late:
		case denied:
			inv.endSpan(a.settle(Outcome{Webhook: inv.webhook, Position: inv.position, Round: inv.round, Result: Abandoned, Elapsed: elapsed}))
		default:
			err := &hook.CallError{Cause: hook.Timeout, Elapsed: elapsed, Err: errUnheard}
			inv.endSpan(a.settle(a.judge(inv, codec.Response{}, err, elapsed)))
		}
	}
}

// hear gives inv its Outcome, of the answer that has arrived.
func (a *admission) hear(inv *invocation) *Outcome {
	inv.waiting = false
	resp, err, operations := inv.resp, inv.err, 0
	if a.Phase == chain.Mutating {
		if err == nil && resp.Allowed && resp.Patch != nil {
			operations, err = a.apply(inv.webhook, resp.Patch)
		}
		if err != nil {
			resp = codec.Response{Warnings: resp.Warnings, Annotations: resp.Annotations, DroppedAnnotations: resp.DroppedAnnotations}
		}
	}
	o := a.judge(inv, resp, err, inv.elapsed)
	o.Operations = operations
	settled := a.settle(o)
	inv.endSpan(settled)
	return settled
}

// batch is the invocations of one admission, and where their answers arrive. Calls
// may outlive the admission: whoever is last, it or a call, gives the memory back.
// What a call that lost a race still reads, such as the uid, must not be in it.
type batch struct {
	pool    *sync.Pool
	calls   *sync.WaitGroup // counts those under way
	list    []*invocation   // of which the memory beyond its length is kept
	answers chan *invocation
	timer   *time.Timer // of who waits for answers; stopped
	users   atomic.Int32
	over    atomic.Bool // the admission needs no answers any more
}

// maxPooledBatch is how many invocations a batch that is kept has room for.
const maxPooledBatch = 64

// newBatch returns a batch without invocations, of which one user is the caller.
func (d *Dispatcher) newBatch() *batch {
	b, ok := d.batches.Get().(*batch)
	if !ok {
		b = &batch{pool: &d.batches, calls: &d.calls, answers: make(chan *invocation, 1)}
	}
	b.users.Store(1)
	b.over.Store(false)
	return b
}

// makeRoom has room for the answers of all invocations at once.
func (b *batch) makeRoom() {
	if cap(b.answers) < len(b.list) {
		b.answers = make(chan *invocation, cap(b.list))
	}
}

// add returns the next invocation.
func (b *batch) add(w *chain.Entry, position, round int) *invocation {
	last := len(b.list)
	b.list = slices.Grow(b.list, 1)[:last+1]
	if b.list[last] == nil {
		b.list[last] = new(invocation)
	}
	inv := b.list[last]
	inv.webhook, inv.position, inv.round, inv.batch = w, position, round, b
	return inv
}

// drop takes back what add returned last.
func (b *batch) drop() {
	last := len(b.list) - 1
	*b.list[last] = invocation{}
	b.list = b.list[:last]
}

// close ends the admission's use of b: no call starts any more.
func (b *batch) close() {
	b.over.Store(true)
	b.release()
}

// release ends the use of one user.
func (b *batch) release() {
	if b.users.Add(-1) > 0 {
		return
	}
	for len(b.answers) > 0 { // that came too late
		<-b.answers
	}
	for _, inv := range b.list {
		*inv = invocation{}
	}
	b.list = b.list[:0]
	if cap(b.list) <= maxPooledBatch {
		b.pool.Put(b)
	}
}

// alarm returns the timer, set to d.
func (b *batch) alarm(d time.Duration) *time.Timer {
	if b.timer == nil {
		b.timer = time.NewTimer(d)
	} else {
		b.timer.Reset(d)
	}
	return b.timer
}

// leastTime is what a call needs to have any prospect: with less left, the
// webhook is not asked in vain (F23).
const leastTime = 5 * time.Millisecond

// hearingTime is kept between the end of a call and that of the admission, so that
// what a call tells at its end, such as a denial that it has kept, is still heard.
const hearingTime = 10 * time.Millisecond

// until returns when a call of w that begins now must be over, if following
// webhooks are to be called after it: at the end of its own timeout, or earlier,
// so that those get their share of the admission's time. full is how long it might
// take if the caller had left it the time.
//
// A webhook that is ignored when it fails must not starve one that is not
// (kubernetes#128162): where others follow, patience with it is bounded too.
func (a *admission) until(w *chain.Entry, following int, impatience time.Duration) (deadline time.Time, full time.Duration) {
	now := time.Now()
	left := a.Deadline.Sub(now)
	left -= min(hearingTime, left/10)
	full = w.Timeout
	if following > 0 && w.FailurePolicy == chain.Ignore {
		full = min(full, impatience)
	}
	return now.Add(min(full, left-reserve(left, following))), full
}

// reserve is what is kept of the time that is left for webhooks to be called
// later: a tenth for each, but never more than half.
func reserve(left time.Duration, following int) time.Duration {
	return min(left/2, left/10*time.Duration(following))
}
