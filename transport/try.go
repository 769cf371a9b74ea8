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

// follow makes an attempt, and repeats it as long as it fails and may be repeated.
func (r *race) follow(c choice) {
	if c.endpoint == nil {
		var ok bool
		if c, ok = r.await(); !ok {
			return
		}
	}
	fresh := false
	for {
		end := r.guarded(c, fresh)
		next, again := r.ended(c, end)
		if !again {
			return
		}
		c, fresh = next, end.stale
	}
}

// guarded is try, with a panic as a failed attempt.
func (r *race) guarded(c choice, fresh bool) (end ending) {
	defer func() {
		if p := recover(); p != nil {
			end = ending{endpoint: c.endpoint, err: &hook.CallError{Cause: hook.Panic, Err: fmt.Errorf("panic while calling: %s", crash.Text(p)), Stack: debug.Stack()}}
		}
	}()
	return r.try(c, fresh)
}

// try makes an attempt, over a fresh connection or any, and tells the Target and
// the breaker how it ended.
func (r *race) try(c choice, fresh bool) ending {
	var (
		t       = r.Target
		begin   = time.Now()
		allowed = r.Deadline.Sub(begin)
		result  = breaker.Excluded
	)
	// Also if the attempt panics, which says nothing about the Endpoint.
	if !t.unspared {
		defer func() { c.ticket.Done(result) }()
	}
	c.endpoint.outstanding.Add(1)
	defer c.endpoint.outstanding.Add(-1)
	t.stats.attempts.Add(1)
	ctx, span := startSpan(r.ctx, t, c.endpoint, c.kind)
	end := r.rules.attempt(ctx, r, &c, fresh)
	now := time.Now()
	if end.pause > 0 {
		r.caller.pause(now.Add(end.pause))
	}
	lost := r.lost(&end)
	if end.heard != nil {
		r.switched(end.heard)
	}
	end.plain, end.doubtful = c.plain, end.doubtful && !c.plain && r.Message.IsNegotiated(now)
	if result = end.judge(now.Sub(r.Deadline), r.isFair(allowed, now), lost); end.doubtful {
		result = breaker.Excluded // the same review in another form may be answered
	}
	if result == breaker.Failure {
		r.caller.hangs.Store(end.kind == breaker.TimedOut)
	}
	span.end(&end, lost)
	r.rules.observer.Attempted(ctx, Attempt{Owner: r.Owner, Endpoint: c.endpoint, Kind: c.kind, Start: begin, Elapsed: now.Sub(begin), Err: end.err, Lost: lost})
	if end.answered() {
		t.latency.record(now, now.Sub(begin))
		r.caller.durations(r.size).record(now, now.Sub(begin))
	}
	return end
}

// isFair reports whether an attempt that was allowed so much time would have been
// answered by a webhook that is well: a good part of the webhook's own timeout, or
// many times what such reviews of the cluster take.
func (r *race) isFair(allowed time.Duration, now time.Time) bool {
	if 3*allowed >= r.Timeout {
		return true
	}
	median, _, ok := r.caller.durations(r.size).quantiles(now)
	return ok && allowed >= 10*median
}
