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
	// localCalls is how many calls of one Func are under way, those that hang among
	// them. Clusters share them.
	localCalls = 256
	// localWorkers is how many goroutines of one Func are kept for the next calls.
	localWorkers = 16
)

// Func is a Hook made of a Go function. It must be closed.
type Func struct {
	decide func(context.Context, Question) (codec.Response, error)
	slots  *share.Pool
	calls  worker.Pool[*localCall]
}

// Local makes a Hook of a function, which may use the Question until it returns. It
// runs on a kept goroutine. An error that is not one of a Receiver's is a CallError,
// and so is a panic; a function that hangs times out, and runs on without anybody
// waiting for it.
func Local(decide func(context.Context, Question) (codec.Response, error)) *Func {
	f := &Func{decide: decide, slots: share.NewPool(localCalls)}
	f.calls.Do, f.calls.Idle = f.call, localWorkers
	return f
}

// localCall is one call of a Func.
type localCall struct {
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

// Ask implements Hook.
func (f *Func) Ask(ctx context.Context, q Question, to Receiver) Outstanding {
	c := &localCall{ctx: ctx, question: q, to: to, begin: time.Now()}
	left := q.Deadline.Sub(c.begin)
	if left <= 0 {
		c.fail(NoTimeLeft, errNoTime)
		return nil
	}
	if !f.slots.Take(q.Cluster, 1, 0) {
		c.fail(Shed, errManyRun)
		return nil
	}
	q.Retain()
	c.timer = time.AfterFunc(left, func() { c.fail(Timeout, errHangs) })
	f.calls.Run(c)
	return nil // nobody waits on its own goroutine for a function that may hang
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

// call calls the function. What it held is given back before the answer is given.
func (f *Func) call(c *localCall) {
	// A function that ends its goroutine (runtime.Goexit) has not answered.
	resp, err := codec.Response{}, error(&CallError{Cause: BadAnswer, Err: errNoAnswer})
	defer func() {
		c.timer.Stop()
		f.slots.Give(c.question.Cluster, 1)
		c.question.Release()
		c.answer(resp, err)
	}()
	resp, err = f.contained(c)
}

var errNoAnswer = errors.New("it has ended its goroutine without an answer")

// contained calls the function, with a panic as a CallError.
func (f *Func) contained(c *localCall) (resp codec.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			resp, err = codec.Response{}, &CallError{
				Cause: Panic, Elapsed: time.Since(c.begin), Err: fmt.Errorf("panic while calling: %s", crash.Text(p)), Stack: debug.Stack(),
			}
		}
	}()
	if resp, err = f.decide(c.ctx, c.question); err != nil {
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

// Close returns when the function runs no more. It must not race with Ask.
func (f *Func) Close() { f.calls.Close() }
