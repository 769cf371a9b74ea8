// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// Call is one question to one Target.
type Call struct {
	Target *Target
	// Message is what is sent. The caller keeps its own reference until Start has
	// returned; the call has one for as long as an attempt may need it.
	Message Message
	// Cluster is sent as the Admission-Cluster header. What its reviews bring about
	// counts against it alone.
	Cluster string
	// Resource is what the review is about, such as "apps/deployments": failures
	// on one resource do not keep the webhook from being asked about others.
	Resource string
	// Shadow: nobody waits for the answer. It takes no slot from calls that decide.
	Shadow bool
	// Deadline is when the answer must be there: the webhook's own timeout and
	// the time left for the admission, whichever is first.
	Deadline time.Time
	// Timeout is what the call would have had if the caller had left it the time. A
	// much earlier Deadline that passes says little about the webhook. 0: unknown.
	Timeout time.Duration
	// Wait: rather than fail because of the open circuit of a webhook that hangs, the
	// call waits until the Deadline, as it would for the webhook itself.
	Wait bool
	// Over is true once nobody needs the answer any more: no review is sent from then
	// on. It is looked at until the Receiver is notified. nil: it is needed to the end.
	Over   *atomic.Bool
	Repeat Repeat
	// Owner is whose call it is, for the Observer; nothing else looks at it.
	Owner hook.ID
}

// Repeat says whether, and when, one call may make more than one attempt. The zero
// value makes one; only a request of which not a byte has left is sent again.
type Repeat struct {
	// Safe: the call has no side effects.
	Safe bool
	// NoHedge: no second attempt while the first is under way.
	NoHedge bool
	// Failures: any failed attempt is repeated, not only a broken connection.
	Failures bool
	// DenyWins: while a hedge is under way, an allow waits a moment for a denial.
	DenyWins bool
}

// Start asks, perhaps more than once, and tells to a verified answer or an error:
// a *hook.CallError, or a *codec.AnswerError whose Denies is set. ctx carries shutdown
// and trace; the deadline is the Call's. A hedge that lost may run on, to the deadline.
func (c *Client) Start(ctx context.Context, call Call, to hook.Receiver) {
	now := time.Now()
	if !now.Before(call.Deadline) {
		to.Receive(codec.Response{}, &hook.CallError{Cause: hook.NoTimeLeft, Err: errNoTimeLeft})
		return
	}
	r := c.races.Get().(*race)
	r.ctx, r.Call, r.to = ctx, call, to
	r.Message.Retain()
	c.running.Add(1)
	r.run(now)
}

// work is a race's first step.
type work struct {
	race  *race
	first step
}

func (c *Client) launch(r *race, first step) { c.workers.Run(work{r, first}) }

// forget keeps the memory of a race for the next.
func (c *Client) forget(r *race) {
	*r = race{common: r.common, timer: r.timer}
	c.races.Put(r)
	c.running.Done()
}

// Call is Start for who waits for the answer.
func (c *Client) Call(ctx context.Context, call Call) (codec.Response, error) {
	w := c.waiters.Get().(waiter)
	c.Start(ctx, call, hook.NewReceiver(w, 0))
	got := <-w
	c.waiters.Put(w)
	return got.resp, got.err
}

// waiter takes the answer for who waits. It keeps nothing of it.
type waiter chan received

type received struct {
	resp codec.Response
	err  error
}

// Answered implements hook.Asker. A race answers once.
func (w waiter) Answered(_ uint64, resp codec.Response, err error) { w <- received{resp, err} }

// Close returns when no attempt runs any more. It must not race with calls.
func (c *Client) Close() {
	c.running.Wait()
	c.workers.Close()
}
