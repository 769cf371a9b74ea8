// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/crash"
	"github.com/admission-dispatcher/dispatcher/internal/share"
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

	mu     sync.Mutex
	idle   []chan *localCall // of goroutines that wait
	closed bool
	wg     sync.WaitGroup
}

// Local makes a Hook of a function, which may use the Question until it returns. It
// runs on a kept goroutine. An error that is not one of a Receiver's is a CallError,
// and so is a panic; a function that hangs times out, and runs on without anybody
// waiting for it.
func Local(decide func(context.Context, Question) (codec.Response, error)) *Func {
	return &Func{decide: decide, slots: share.NewPool(localCalls)}
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
func (f *Func) Ask(ctx context.Context, q Question, to Receiver) {
	c := &localCall{ctx: ctx, question: q, to: to, begin: time.Now()}
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
	f.run(c)
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

// run has c done on a goroutine that waits, or on a new one.
func (f *Func) run(c *localCall) {
	f.mu.Lock()
	if n := len(f.idle); n > 0 {
		calls := f.idle[n-1]
		f.idle = f.idle[:n-1]
		f.mu.Unlock()
		calls <- c
		return
	}
	f.mu.Unlock()
	calls := make(chan *localCall, 1)
	calls <- c
	f.wg.Go(func() { f.work(calls) })
}

func (f *Func) work(calls chan *localCall) {
	for c := range calls {
		f.call(c)
		if !f.rest(calls) {
			return
		}
	}
}

// rest puts a goroutine among those that wait; it reports false if it is not needed.
func (f *Func) rest(calls chan *localCall) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || len(f.idle) >= localWorkers {
		return false
	}
	f.idle = append(f.idle, calls)
	return true
}

// call calls the function. What it held is given back before the answer is given.
func (f *Func) call(c *localCall) {
	resp, err := f.contained(c)
	c.timer.Stop()
	f.slots.Give(c.question.Cluster, 1)
	c.question.Release()
	c.answer(resp, err)
}

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
func (f *Func) Close() {
	f.mu.Lock()
	f.closed = true
	for _, calls := range f.idle {
		close(calls)
	}
	f.idle = nil
	f.mu.Unlock()
	f.wg.Wait()
}
