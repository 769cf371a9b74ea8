// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// asked returns an admission until a deadline, whose webhooks have been asked.
func asked(d *Dispatcher, deadline time.Duration, webhooks ...*chain.Entry) *admission {
	a := &admission{Request: Request{Cluster: &chain.Cluster{}, Review: &codec.Review{}, Deadline: time.Now().Add(deadline)}, batch: d.newBatch()}
	for i, w := range webhooks {
		a.batch.add(w, i, 0).waiting = true
	}
	a.batch.makeRoom()
	return a
}

func deny(inv *invocation) {
	inv.resp = codec.Response{Code: http.StatusForbidden}
	inv.batch.answers <- inv
}

// The grace after a denial ends at the deadline, also where a call does not end then.
func TestGraceEndsAtTheDeadline(t *testing.T) {
	for _, c := range []struct{ denial, want time.Duration }{
		{100 * time.Millisecond, 200 * time.Millisecond},
		{950 * time.Millisecond, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &Dispatcher{grace: 100 * time.Millisecond}
			a := asked(d, time.Second, &chain.Entry{ID: hook.ID{Name: "a"}}, &chain.Entry{ID: hook.ID{Name: "never"}})
			begin := time.Now()
			time.AfterFunc(c.denial, func() { deny(a.batch.list[0]) })
			d.join(a)
			if took := time.Since(begin); took != c.want || a.outcomes[1].Result != Abandoned {
				t.Errorf("denied at %v: waited %v, want %v; outcomes are %+v", c.denial, took, c.want, a.outcomes)
			}
		})
	}
}

// A denial that is there when the deadline has passed, because the process stood
// still, is heard.
func TestJoinHearsWhatIsThere(t *testing.T) {
	d := &Dispatcher{}
	for range 50 { // a select chooses at random
		a := asked(d, -time.Second, &chain.Entry{ID: hook.ID{Name: "a"}, FailurePolicy: chain.Ignore}, &chain.Entry{ID: hook.ID{Name: "b"}, FailurePolicy: chain.Ignore})
		deny(a.batch.list[1])
		d.join(a)
		if len(a.outcomes) != 2 || !a.denied() {
			t.Fatalf("outcomes are %+v", a.outcomes)
		}
	}
}

// An answer that comes after its stage is over stands in for nobody of the next one.
func TestJoinKeepsStagesApart(t *testing.T) {
	d := &Dispatcher{}
	late, next := &chain.Entry{ID: hook.ID{Name: "late"}, FailurePolicy: chain.Ignore}, &chain.Entry{ID: hook.ID{Name: "next"}}
	a := asked(d, time.Minute, late, next)
	first, second := a.batch.list[0], a.batch.list[1]
	second.waiting = false
	a.settleUnheard(false, time.Second)
	second.waiting = true
	deny(first)
	deny(second)
	d.join(a)
	if len(a.outcomes) != 2 || a.outcomes[0].Webhook != late || a.outcomes[1].Webhook != next || a.outcomes[1].Result != Denied {
		t.Errorf("outcomes are %+v", a.outcomes)
	}
}

// What a call gets of the time that is left: all but 10 ms, where nobody follows;
// otherwise a tenth is kept for each that follows, at most half. Who is ignored does not
// get more than the given patience then.
func TestShareOfTheDeadline(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, c := range []struct {
		left      time.Duration
		policy    chain.FailurePolicy
		timeout   time.Duration
		following int
		want      time.Duration // of the call
		full      time.Duration // that it might have had
	}{
		{10*s + 10*ms, chain.Fail, 30 * s, 0, 10 * s, 30 * s},
		{10*s + 10*ms, chain.Fail, 30 * s, 1, 9 * s, 30 * s},
		{10*s + 10*ms, chain.Fail, 30 * s, 4, 6 * s, 30 * s},
		{10*s + 10*ms, chain.Fail, 30 * s, 5, 5 * s, 30 * s},
		{10*s + 10*ms, chain.Fail, 30 * s, 9, 5 * s, 30 * s},
		{10*s + 10*ms, chain.Fail, 2 * s, 9, 2 * s, 2 * s},
		{10*s + 10*ms, chain.Ignore, 30 * s, 0, 10 * s, 30 * s},
		{10*s + 10*ms, chain.Ignore, 30 * s, 1, s, s},
		{10*s + 10*ms, chain.Ignore, 300 * ms, 1, 300 * ms, 300 * ms},
		{s + 10*ms, chain.Ignore, 30 * s, 1, 900 * ms, s},
		{50 * ms, chain.Fail, 30 * s, 0, 45 * ms, 30 * s}, // a tenth, where that is less than 10 ms
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &admission{Request: Request{Deadline: time.Now().Add(c.left)}}
			deadline, full := a.until(&chain.Entry{FailurePolicy: c.policy, Timeout: c.timeout}, c.following, s)
			if got := time.Until(deadline); got != c.want || full != c.full {
				t.Errorf("%+v: it gets %v of %v", c, got, full)
			}
		})
	}
}
