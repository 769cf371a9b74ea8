// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/crash"
	"github.com/admission-dispatcher/dispatcher/internal/tracecontext"
)

// invocation is one Entry that wants the review, and what its Hook answers. It may
// outlive the admission.
type invocation struct {
	// ticket is that of the Question that waits for an answer. It only ever grows, from
	// one admission that uses the memory to the next: a Hook that answers twice, however
	// late, answers nothing else.
	ticket atomic.Uint64
	inquiry
}

// inquiry is what an invocation is about. It is replaced whole, so that nothing of one
// admission is left for the next.
type inquiry struct {
	webhook  *chain.Entry
	position int
	round    int

	undecided bool // whether it wants the review: a Shadow webhook, for which nobody waits

	batch   *batch
	begin   time.Time // of the call
	to      hook.Receiver
	waiting bool // started, and without an Outcome
	// outstanding is to be awaited or left; nil: the answer comes by itself, or has come.
	outstanding hook.Outstanding
	span        trace.Span // nil where the admission is not sampled

	// The answer, once it has arrived.
	resp    codec.Response
	err     error
	elapsed time.Duration
}

// Answered implements hook.Asker. Of a Hook that answers twice the first answer counts.
// Whoever does not have the ticket that is waited for must not touch inv.
func (inv *invocation) Answered(ticket uint64, resp codec.Response, err error) {
	if !inv.ticket.CompareAndSwap(ticket, ticket+1) {
		return
	}
	inv.resp, inv.err, inv.elapsed = resp, err, time.Since(inv.begin)
	b := inv.batch
	defer b.calls.Done()
	b.answers <- inv
	b.release()
}

// await waits for the answer as long as the Hook has it, if there is one to wait for.
func (inv *invocation) await() {
	defer func() { inv.contain(recover()) }()
	if o := inv.outstanding; o != nil {
		inv.outstanding = nil
		o.Await()
	}
}

// leave has the answer come by itself.
func (inv *invocation) leave() {
	defer func() { inv.contain(recover()) }()
	if o := inv.outstanding; o != nil {
		inv.outstanding = nil
		o.Leave()
	}
}

// contain makes a CallError of a Hook's panic, if there was one.
func (inv *invocation) contain(value any) {
	if value != nil {
		inv.to.Receive(codec.Response{}, &hook.CallError{
			Cause: hook.Panic, Elapsed: time.Since(inv.begin), Err: fmt.Errorf("panic while calling: %s", crash.Text(value)), Stack: debug.Stack(),
		})
	}
}

// tracerName is the instrumentation scope of webhooks' spans.
const tracerName = "github.com/admission-dispatcher/dispatcher/dispatcher"

// startSpan begins the span of one invocation where the admission is sampled. The
// parent is asked first: even a span that records nothing costs microseconds.
func (inv *invocation) startSpan(ctx context.Context) context.Context {
	if tracecontext.IsUnsampled(ctx) {
		return ctx
	}
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx
	}
	w := inv.webhook
	ctx, inv.span = parent.TracerProvider().Tracer(tracerName).Start(ctx, cmp.Or(w.Noun, "webhook")+" "+w.Name, trace.WithAttributes(
		attribute.String("admission.webhook", w.Name),
		attribute.String("admission.configuration", w.Configuration),
		attribute.String("admission.mode", w.Mode.String()),
		attribute.Int("admission.round", inv.round),
	))
	return ctx
}

// endSpan ends the span with what the invocation came to. A denial is no error;
// that there is no usable answer is one, also where it is ignored.
func (inv *invocation) endSpan(o *Outcome) {
	if inv.span == nil {
		return
	}
	inv.span.SetAttributes(
		attribute.String("admission.outcome", o.Result.String()),
		attribute.Bool("admission.fail_open", o.FailsOpen() && inv.webhook.Mode != chain.Shadow),
		attribute.Int("admission.patch.operations", o.Operations),
	)
	if o.Cause != "" {
		inv.span.SetAttributes(attribute.String("error.type", string(o.Cause)))
	}
	if o.Result == Failed || o.Result == FailedOpen {
		inv.span.SetStatus(codes.Error, string(o.Cause))
	}
	inv.span.End()
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
	b.list[last].inquiry = inquiry{}
	b.list = b.list[:last]
}

// next returns the one that is due first of those to wait for; nil: there is none.
func (b *batch) next() (first *invocation) {
	for _, inv := range b.list {
		if o := inv.outstanding; o != nil && (first == nil || o.Due().Before(first.outstanding.Due())) {
			first = inv
		}
	}
	return first
}

// waiting returns how many have been asked and have no Outcome.
func (b *batch) waiting() (n int) {
	for _, inv := range b.list {
		if inv.waiting {
			n++
		}
	}
	return n
}

// leave has all answers come by themselves that nobody has awaited.
func (b *batch) leave() {
	for _, inv := range b.list {
		inv.leave()
	}
}

// close ends the admission's use of b: no call starts any more, and what was not awaited,
// as after a panic, comes by itself.
func (b *batch) close() {
	b.leave()
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
		inv.inquiry = inquiry{}
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
