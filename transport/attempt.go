// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/crash"
)

// attempt makes one try, and notes what that says of the Target. A panic is a failed
// attempt, and says nothing of it.
func (r *race) attempt(c choice) (end result) {
	t, begin := r.Target, time.Now()
	judged := breaker.Excluded
	c.endpoint.outstanding.Add(1)
	defer func() {
		if p := recover(); p != nil {
			end = result{err: &hook.CallError{Cause: hook.Panic, Err: fmt.Errorf("panic while calling: %s", crash.Text(p)), Stack: debug.Stack()}}
		}
		c.endpoint.outstanding.Add(-1)
		if !t.unspared {
			c.ticket.Done(judged)
		}
	}()
	t.stats.attempts.Add(1)
	ctx, span := startSpan(r.ctx, t, c.endpoint, c.kind)
	end = r.exchange(ctx, r, &c)
	now := time.Now()
	if end.pause > 0 {
		r.caller.pause(now.Add(end.pause))
	}
	if end.heard != nil {
		r.switched(end.heard)
	}
	lost := r.over.Load()
	end.plain, end.doubtful = c.plain, end.doubtful && !c.plain && r.Message.IsNegotiated(now)
	if judged = end.judge(now.Sub(r.Deadline), r.isFair(r.Deadline.Sub(begin), now), lost); end.doubtful {
		judged = breaker.Excluded // the same request in another wording may be answered
	}
	if judged == breaker.Failure {
		r.caller.hangs.Store(end.kind == breaker.TimedOut)
	}
	span.end(&end, lost)
	r.observer.Attempted(ctx, Attempt{Owner: r.Owner, Endpoint: c.endpoint, Kind: c.kind, Start: begin, Elapsed: now.Sub(begin), Err: end.err, Lost: lost})
	if end.answered() {
		t.latency.record(now, now.Sub(begin))
		r.caller.durations(r.size).record(now, now.Sub(begin))
	}
	return end
}

// isFair reports whether an attempt that was allowed so much time would have been
// answered by a server that is well: a good part of the Target's own timeout, or
// many times what such requests of the cluster take.
func (r *race) isFair(allowed time.Duration, now time.Time) bool {
	if 3*allowed >= r.Timeout {
		return true
	}
	median, _, ok := r.caller.durations(r.size).quantiles(now)
	return ok && allowed >= 10*median
}
