// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/crash"
	"github.com/admission-dispatcher/dispatcher/internal/share"
	"github.com/admission-dispatcher/dispatcher/internal/worker"
)

const (
	// localCalls is how many calls of one function are under way, those that hang among
	// them. Clusters share them.
	localCalls = 256
	// localWorkers is how many goroutines of one Func are kept for the next calls.
	localWorkers = 16
)

// Workers are goroutines that calls of functions run on, kept from one to the next.
// They must be closed.
type Workers struct{ pool worker.Pool[*localCall] }

// NewWorkers returns Workers of which at most idle wait for calls. They start none
// before the first call.
func NewWorkers(idle int) *Workers {
	w := &Workers{}
	w.pool.Do, w.pool.Idle = (*localCall).run, idle
	return w
}

// Close returns when no function runs any more, one that hangs among them. It must not
// race with Ask.
func (w *Workers) Close() { w.pool.Close() }

// Calls is the right to call one function: how many calls of it are under way is limited,
// and shared among clusters. It outlives a configuration, so that calls that hang count
// until they end.
type Calls struct {
	slots   *share.Pool
	workers *Workers
}

// NewCalls returns Calls that run on w.
func (w *Workers) NewCalls() *Calls { return &Calls{share.NewPool(localCalls), w} }

// Decide is a function that answers a Question, which it may use until it returns.
type Decide func(context.Context, Question) (codec.Response, error)

// Func is a Hook made of a Go function. It must be closed.
type Func struct {
	decide Decide
	*Calls
}

// Local makes a Hook of a function with goroutines of its own.
func Local(decide func(context.Context, Question) (codec.Response, error)) *Func {
	return &Func{decide, NewWorkers(localWorkers).NewCalls()}
}

// Ask implements Hook.
func (f *Func) Ask(ctx context.Context, q Question, to Receiver) Outstanding {
	f.Call(ctx, q, to, f.decide)
	return nil
}

// Close returns when the function runs no more. It must not race with Ask.
func (f *Func) Close() { f.workers.Close() }

// localCall is one call of a Func.
type localCall struct {
	*Calls
	decide   Decide
	ctx      context.Context
	question Question
	to       Receiver
	begin    time.Time
	timer    *time.Timer
	answered atomic.Bool
}

var (
	errNoTime  = errors.New("no time left for the call")
	errHangs   = errors.New("no answer in time")
	errManyRun = errors.New("too many calls are under way")
)

// Call has decide answer q, as Hook.Ask does. It runs on a kept goroutine: nobody waits on
// its own for a function that may hang, so the answer always comes by itself. An error that
// is not one of a Receiver's is a CallError, and so is a panic; a function that hangs times
// out, and runs on without anybody waiting for it.
func (f *Calls) Call(ctx context.Context, q Question, to Receiver, decide Decide) {
	c := &localCall{Calls: f, decide: decide, ctx: ctx, question: q, to: to, begin: time.Now()}
	left := q.Deadline.Sub(c.begin)
	if left <= 0 {
		c.fail(NoTimeLeft, errNoTime)
		return
	}
	if !f.slots.Take(q.Cluster, 1, 0) {
		c.fail(Shed, errManyRun)
		return
	}
	q.Retain()
	c.timer = time.AfterFunc(left, func() { c.fail(Timeout, errHangs) })
	f.workers.pool.Run(c)
}

func (c *localCall) fail(cause Cause, err error) {
	c.answer(codec.Response{}, &CallError{Cause: cause, Elapsed: time.Since(c.begin), Err: err})
}

// answer notifies the Receiver, once.
func (c *localCall) answer(resp codec.Response, err error) {
	if !c.answered.Swap(true) {
		c.to.Receive(resp, err)
	}
}

// run calls the function. What it held is given back before the answer is given.
func (c *localCall) run() {
	// A function that ends its goroutine (runtime.Goexit) has not answered.
	resp, err := codec.Response{}, error(&CallError{Cause: BadAnswer, Err: errNoAnswer})
	defer func() {
		c.timer.Stop()
		c.slots.Give(c.question.Cluster, 1)
		c.question.Release()
		c.answer(resp, err)
	}()
	resp, err = c.contained()
}

var errNoAnswer = errors.New("it has ended its goroutine without an answer")

// contained calls the function, with a panic as a CallError.
func (c *localCall) contained() (resp codec.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			resp, err = codec.Response{}, &CallError{
				Cause: Panic, Elapsed: time.Since(c.begin), Err: fmt.Errorf("panic while calling: %s", crash.Text(p)), Stack: debug.Stack(),
			}
		}
	}()
	if resp, err = c.decide(c.ctx, c.question); err != nil {
		return codec.Response{}, c.unusable(err)
	}
	if !resp.Allowed && resp.Code == 0 {
		resp.Code, resp.Reason = http.StatusForbidden, "Forbidden"
	}
	return resp, nil
}

// unusable is err as a Receiver gets it.
func (c *localCall) unusable(err error) error {
	var (
		call    *CallError
		refusal *Refusal
	)
	if errors.As(err, &call) || errors.As(err, &refusal) {
		return err
	}
	return &CallError{Cause: BadAnswer, Elapsed: time.Since(c.begin), Err: err}
}
