// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// reply is what an Endpoint of these tests does with an attempt.
type reply struct {
	after time.Duration
	result
}

func says(after time.Duration, allowed bool) reply {
	resp := codec.Response{Allowed: allowed}
	kind := breaker.Denied
	if allowed {
		kind = breaker.Allowed
	}
	return reply{after, result{resp: resp, kind: kind}}
}

func fails(after time.Duration, cause hook.Cause, kind breaker.Kind) reply {
	return reply{after, result{err: &hook.CallError{Cause: cause, Err: errors.New(string(cause))}, kind: kind}}
}

// badAnswer is as an attempt reports it.
func badAnswer(after time.Duration) reply {
	r := fails(after, hook.BadAnswer, breaker.BadAnswer)
	r.result.err = &hook.CallError{Cause: hook.BadAnswer, Err: &codec.AnswerError{Reason: "malformed"}}
	return r
}

var (
	reset     = fails(time.Millisecond, hook.Unreachable, breaker.Reset)
	refused   = reply{time.Millisecond, result{err: &hook.CallError{Cause: hook.Unreachable, Err: errors.New("refused")}, kind: breaker.Refused, unsent: true}}
	stale     = reply{time.Millisecond, result{err: &hook.CallError{Cause: hook.Unreachable, Err: errors.New("stale")}, kind: breaker.Reset, stale: true}}
	unwritten = reply{time.Millisecond, result{err: &hook.CallError{Cause: hook.Unreachable, Err: errors.New("closed")}, kind: breaker.Reset, stale: true, unsent: true}}
	malformed = badAnswer(time.Millisecond)
	never     = reply{after: time.Hour}
)

// negotiated is a Message whose first wording is in doubt, and that remembers what it
// has learned.
type negotiated struct {
	mu       sync.Mutex
	refs     int
	lessons  []Lesson
	switches bool // a misreading changes the wording for the calls to come
}

func (m *negotiated) Retain()                       { m.count(1) }
func (m *negotiated) Release()                      { m.count(-1) }
func (m *negotiated) Len() int                      { return 0 }
func (m *negotiated) Payload(bool) (Payload, error) { return Payload{}, nil }
func (m *negotiated) Judge(Reply) Judgment          { return Judgment{} }
func (m *negotiated) IsNegotiated(time.Time) bool   { return !m.has(Blameless) }
func (m *negotiated) Learn(l Lesson, _ time.Time) *Switch {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lessons = append(m.lessons, l)
	if m.switches && l == Misread {
		return &Switch{Reads: "JSON"}
	}
	return nil
}

func (m *negotiated) count(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refs += n
	return m.refs
}

func (m *negotiated) has(l Lesson) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.lessons, l)
}

// table is a Target whose Endpoints answer by script, in the order of attempts.
type table struct {
	t        *testing.T
	ctx      context.Context
	target   *Target
	wait     bool        // as calls under Fail do
	over     atomic.Bool // nobody needs the answer any more
	losers   sync.WaitGroup
	message  negotiated
	observer Observer
	before   func(*Endpoint) // what happens as an attempt begins; nil: nothing
	idle     bool            // there are idle connections
	handed   atomic.Int64    // steps that were handed to workers

	mu      sync.Mutex
	last    *race
	replies []reply // of the attempts to come; the last is repeated
	sent    map[*try]reply
	asked   []*Endpoint // by the attempts of the last call
	plain   []bool      // whether they were sent plain JSON
	vain    int         // how many were under way when nobody needed them any more
}

func newTable(t *testing.T, endpoints int) *table {
	var list []*Endpoint
	for i := range endpoints {
		address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 443)
		list = append(list, newEndpoint(&origin{}, address, breaker.Settings{}))
	}
	target := &Target{host: "policy"}
	target.endpoints.Store(&list)
	return &table{t: t, ctx: t.Context(), target: target, observer: Silent{}, idle: true}
}

// exchange is as the real one. Where there is no idle connection, nothing is sent without
// waiting.
func (x *table) exchange(call *race, a *try, how extent) (end result, done bool) {
	if how == toSend && !x.idle {
		return result{}, false
	}
	if !a.sent {
		x.send(a)
	}
	r, until := x.scripted(a), call.Deadline
	switch how {
	case toSend:
		return result{}, false
	case toListen:
		until = call.due
	case toEnd:
	}
	<-time.After(min(time.Until(until), r.after-time.Since(a.begin)))
	switch {
	case time.Since(a.begin) >= r.after:
	case how == toListen:
		return result{}, false
	default:
		r.result = result{err: &hook.CallError{Cause: hook.Timeout, Err: errors.New("no answer in time")}, kind: breaker.TimedOut}
	}
	a.ended = time.Now()
	if !call.isNeeded() {
		x.mu.Lock()
		x.vain++
		x.mu.Unlock()
	}
	return r.result, true
}

// send takes the next reply for an attempt.
func (x *table) send(a *try) {
	if x.before != nil {
		x.before(a.endpoint)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	a.sent = true
	if x.sent == nil {
		x.sent = map[*try]reply{}
	}
	x.sent[a] = x.replies[0]
	if len(x.replies) > 1 {
		x.replies = x.replies[1:]
	}
	x.asked, x.plain = append(x.asked, a.endpoint), append(x.plain, a.choice.plain)
}

func (x *table) scripted(a *try) reply {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sent[a]
}

// call makes one call of a second and returns what it came to, after how long.
func (x *table) call(repeat Repeat, replies ...reply) (codec.Response, time.Duration, error) {
	x.mu.Lock()
	x.replies, x.asked, x.plain = replies, nil, nil
	x.mu.Unlock()
	now := time.Now()
	resp, err := x.make(repeat, time.Second)
	return resp, time.Since(now), err
}

// one makes one call more, as what is to come is replied to.
func (x *table) one(timeout time.Duration) (codec.Response, error) { return x.make(Repeat{}, timeout) }

func (x *table) setLast(r *race) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.last = r
}

func (x *table) make(repeat Repeat, timeout time.Duration) (codec.Response, error) {
	now, answers := time.Now(), make(waiter, 1)
	r := &race{
		Call: Call{Target: x.target, Message: &x.message, Repeat: repeat, Deadline: now.Add(timeout), Wait: x.wait, Over: &x.over, Resource: "pods", Owner: hook.ID{Name: "owner"}},
		ctx:  x.ctx,
		to:   hook.NewReceiver(answers, 0),
		common: &common{
			exchange: x.exchange,
			observer: x.observer,
			start: func(r *race, s step) {
				x.handed.Add(1)
				go r.follow(s)
			},
			free: func(*race) { x.losers.Done() },
		},
	}
	x.losers.Add(1)
	r.Message.Retain() // as Start does
	x.setLast(r)
	if r.run(now) {
		r.Await()
	}
	got := <-answers
	return got.resp, got.err
}

// attempts returns how many the last call has made, once its losers are done.
func (x *table) attempts() int {
	x.losers.Wait()
	return len(x.asked)
}

// warm makes enough calls of 5 ms for hedging, and lets their window's figures
// be looked at anew.
func (x *table) warm() {
	for range 2 * recentWarm {
		x.call(Repeat{Safe: true}, says(5*time.Millisecond, true))
	}
	<-time.After(recentRefresh)
}

// inBothWays has the first attempt of a call made by who asks, and by a worker.
func inBothWays(t *testing.T, name string, test func(t *testing.T, idle bool)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { test(t, true) })
	t.Run(name+", by a worker", func(t *testing.T) { test(t, false) })
}

func wantCause(t *testing.T, err error, want hook.Cause) {
	t.Helper()
	var call *hook.CallError
	if !errors.As(err, &call) || call.Cause != want {
		t.Errorf("the error is %v, want cause %s", err, want)
	}
}

func TestRace(t *testing.T) {
	safe := Repeat{Safe: true}
	for _, row := range []struct {
		name      string
		endpoints int
		cold      bool
		repeat    Repeat
		replies   []reply
		attempts  int
		denies    bool
		cause     hook.Cause
		within    time.Duration // 0: not looked at
	}{
		{name: "one answer", endpoints: 2, repeat: safe, replies: []reply{says(time.Millisecond, true)}, attempts: 1},
		{name: "F8 a slow answer is hedged", endpoints: 2, repeat: safe, replies: []reply{never, says(time.Millisecond, true)}, attempts: 2, within: 20 * time.Millisecond},
		{name: "F8 also with one Endpoint", endpoints: 1, repeat: safe, replies: []reply{never, says(time.Millisecond, true)}, attempts: 2, within: 20 * time.Millisecond},
		{name: "no hedge until the window is warm", endpoints: 2, cold: true, repeat: safe, replies: []reply{never}, attempts: 1, cause: hook.Timeout},
		{name: "no hedge where the binding says so", endpoints: 2, repeat: Repeat{Safe: true, NoHedge: true}, replies: []reply{never}, attempts: 1, cause: hook.Timeout},
		{name: "F13 with side effects exactly one attempt", endpoints: 2, replies: []reply{reset}, attempts: 1, cause: hook.Unreachable},
		{name: "with side effects no hedge", endpoints: 2, replies: []reply{says(900*time.Millisecond, true)}, attempts: 1},
		{name: "with side effects again what was never sent", endpoints: 2, replies: []reply{refused, says(0, true)}, attempts: 2},
		{name: "F14 a connection that was closed while idle is replaced", endpoints: 1, repeat: safe, replies: []reply{stale, says(0, true)}, attempts: 2},
		{name: "F14 once", endpoints: 1, repeat: safe, replies: []reply{stale, refused}, attempts: 2, cause: hook.Unreachable},
		{name: "F14 with side effects if nothing was written", endpoints: 1, replies: []reply{unwritten, says(0, true)}, attempts: 2},
		{name: "F14 with side effects not if anything was", endpoints: 1, replies: []reply{stale, says(0, true)}, attempts: 1, cause: hook.Unreachable},
		{name: "F12 a reset is retried", endpoints: 1, repeat: safe, replies: []reply{reset, says(0, true)}, attempts: 2},
		{name: "F2 a refused connection is retried elsewhere", endpoints: 3, repeat: safe, replies: []reply{refused, says(0, true)}, attempts: 2},
		{name: "F1 refused everywhere", endpoints: 3, repeat: safe, replies: []reply{refused}, attempts: 3, cause: hook.Unreachable},
		{name: "F21 an error, then a denial", endpoints: 2, repeat: safe, replies: []reply{fails(30*time.Millisecond, hook.HTTPStatus, breaker.ServerError), says(50*time.Millisecond, false)}, attempts: 2, denies: true},
		{name: "F21 malformed, then an allow", endpoints: 2, repeat: safe, replies: []reply{{30 * time.Millisecond, malformed.result}, says(50*time.Millisecond, true)}, attempts: 2},
		{name: "an error is not repeated", endpoints: 2, repeat: safe, replies: []reply{malformed}, attempts: 1, cause: hook.BadAnswer},
		{name: "Retry repeats every failure", endpoints: 2, repeat: Repeat{Safe: true, Failures: true}, replies: []reply{malformed, malformed, says(0, true)}, attempts: 3},
		{name: "Retry ends in the failure", endpoints: 2, repeat: Repeat{Safe: true, Failures: true}, replies: []reply{malformed}, attempts: maxAttempts, cause: hook.BadAnswer},
		{name: "Retry not with side effects", endpoints: 2, repeat: Repeat{Failures: true}, replies: []reply{malformed}, attempts: 1, cause: hook.BadAnswer},
		{name: "denyWins waits for the twin's denial", endpoints: 2, repeat: Repeat{Safe: true, DenyWins: true}, replies: []reply{says(30*time.Millisecond, false), says(time.Millisecond, true)}, attempts: 2, denies: true},
		{name: "denyWins does not wait for ever", endpoints: 2, repeat: Repeat{Safe: true, DenyWins: true}, replies: []reply{never, says(time.Millisecond, true)}, attempts: 2, within: 10*time.Millisecond*2 + denyGrace},
		{name: "the first verdict wins otherwise", endpoints: 2, repeat: safe, replies: []reply{says(30*time.Millisecond, false), says(time.Millisecond, true)}, attempts: 2},
	} {
		inBothWays(t, row.name, func(t *testing.T, idle bool) {
			synctest.Test(t, func(t *testing.T) {
				x := newTable(t, row.endpoints)
				x.idle = idle
				if !row.cold {
					x.warm()
				}
				resp, took, err := x.call(row.repeat, row.replies...)
				if n := x.attempts(); n != row.attempts {
					t.Errorf("%d attempts, want %d", n, row.attempts)
				}
				if row.cause != "" {
					wantCause(t, err, row.cause)
				} else if err != nil || resp.Allowed == row.denies {
					t.Errorf("allowed %v, error %v", resp.Allowed, err)
				}
				if row.within > 0 && took > row.within {
					t.Errorf("took %v, want at most %v", took, row.within)
				}
			})
		})
	}
}

// Once the admission has been answered, nothing more is asked: no hedge, no retry,
// at once or after a pause, and not the same in plain JSON.
func TestNothingIsAskedAfterTheAnswer(t *testing.T) {
	unsupported := fails(100*time.Millisecond, hook.HTTPStatus, breaker.ClientError)
	unsupported.doubtful = true
	late := func(r reply) reply { return reply{100 * time.Millisecond, r.result} }
	for _, row := range []struct {
		name   string
		repeat Repeat
		first  reply
		over   time.Duration // when the admission is answered
	}{
		{"a hedge", Repeat{Safe: true}, never, 5 * time.Millisecond},
		{"a retry of what was reset", Repeat{Safe: true, NoHedge: true}, late(reset), 50 * time.Millisecond},
		{"a retry of what was never sent", Repeat{}, late(refused), 50 * time.Millisecond},
		{"a retry over a fresh connection", Repeat{Safe: true, NoHedge: true}, late(stale), 50 * time.Millisecond},
		{"a retry for which a pause has begun", Repeat{Safe: true, NoHedge: true, Failures: true}, late(malformed), 100*time.Millisecond + minBackoff/4},
		{"plain JSON", Repeat{Safe: true, NoHedge: true}, unsupported, 50 * time.Millisecond},
	} {
		inBothWays(t, row.name, func(t *testing.T, idle bool) {
			for _, answered := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					x := newTable(t, 2)
					x.idle = idle
					x.warm()
					want := 2
					if answered {
						want = 1
						time.AfterFunc(row.over, func() { x.over.Store(true) })
					}
					if x.call(row.repeat, row.first, says(0, true)); x.attempts() != want {
						t.Errorf("%d attempts, want %d", x.attempts(), want)
					}
				})
			}
		})
	}
}

// The Message is held until the last loser has ended, and released once, whatever
// rings after that.
func TestMessageIsReleasedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 2)
		x.warm()
		x.call(Repeat{Safe: true}, says(100*time.Millisecond, true), says(0, true))
		if n := x.message.count(0); n != 1 {
			t.Errorf("%d references while a loser runs", n)
		}
		x.losers.Wait()
		x.last.on(event{what: rang})
		if n := x.message.count(0); n != 0 {
			t.Errorf("%d references after the end", n)
		}
	})
}

// The loser of a race learns that nobody needs it, so that it sends nothing if it has
// not yet.
func TestLoserIsNotNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 2)
		x.warm()
		x.call(Repeat{Safe: true}, says(100*time.Millisecond, true), says(0, true))
		if n := x.attempts(); n != 2 || x.vain != 1 {
			t.Errorf("of %d attempts %d were in vain", n, x.vain)
		}
	})
}

// A hedge goes to an Endpoint that has not been asked, if there is one.
func TestHedgeGoesElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 2)
		x.warm()
		for range 8 {
			x.call(Repeat{Safe: true}, never, says(0, true))
			if x.attempts() != 2 || x.asked[0] == x.asked[1] {
				t.Fatalf("asked %v", x.asked)
			}
			<-time.After(budgetWindow + budgetSlot)
			x.warm()
		}
	})
}

// Extra attempts stay within their budget, and a call that gets none ends as it
// would have without.
func TestBudgetOfExtraAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 1)
		const calls, broken = 400, 5 // every fifth
		failed := 0
		for i := range calls {
			replies := []reply{says(0, true)}
			if i%broken == broken-1 {
				replies = []reply{reset, says(0, true)}
			}
			if _, _, err := x.call(Repeat{Safe: true}, replies...); err != nil {
				failed++
			}
		}
		s := x.target.Stats()
		if want := int64(5 + calls/20); s.Retries != want || s.BudgetRefused != int64(failed) || failed+int(s.Retries) != calls/broken {
			t.Errorf("%+v, %d failed, want %d retries", s, failed, want)
		}
	})
}

// One connection that the webhook closed while it was idle costs no budget.
func TestRedialIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 1)
		for range 2 * budgetBurst {
			if _, _, err := x.call(Repeat{Safe: true}, stale, says(0, true)); err != nil {
				t.Fatal(err)
			}
		}
		if !x.target.callers.of("", time.Now()).budget.take(time.Now()) {
			t.Error("the budget is used up")
		}
	})
}

// Falling back to plain JSON costs no budget: each call under way may have to.
func TestFallbackIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 1)
		unsupported := fails(0, hook.HTTPStatus, breaker.ClientError)
		unsupported.doubtful = true
		for range 2 * budgetBurst {
			if _, _, err := x.call(Repeat{Safe: true}, unsupported, says(0, true)); err != nil {
				t.Fatal(err)
			}
		}
		if !x.target.callers.of("", time.Now()).budget.take(time.Now()) || x.target.Stats().Misread != 2*budgetBurst {
			t.Errorf("the budget is used up, or it was not counted: %+v", x.target.Stats())
		}
	})
}

// Retry-After and 429 keep extra attempts away for that long.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 2)
		busy := fails(0, hook.HTTPStatus, breaker.TooManyRequests)
		busy.pause = 3 * time.Second
		x.call(Repeat{Safe: true}, busy)
		again := func() int {
			x.call(Repeat{Safe: true}, reset, says(0, true))
			return x.attempts()
		}
		if n := again(); n != 1 {
			t.Errorf("%d attempts during the pause", n)
		}
		<-time.After(busy.pause)
		if n := again(); n != 2 {
			t.Errorf("%d attempts after the pause", n)
		}
	})
}

// When every Endpoint has failed, calls end at once, but for a few that look
// whether it is back; and when it is, they succeed again.
func TestBreakerOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 1)
		for range 3 {
			x.call(Repeat{}, refused)
		}
		var err error
		x.call(Repeat{}, refused) // perhaps a forced one
		for range 3 {
			var took time.Duration
			if _, took, err = x.call(Repeat{}, refused); err == nil || took > time.Millisecond {
				t.Fatal(err, took)
			}
		}
		wantCause(t, err, hook.BreakerOpen)
		<-time.After(time.Minute)
		for range 3 {
			if _, _, err = x.call(Repeat{}, says(0, true)); err != nil {
				t.Error(err)
			}
		}
	})
}

// Losers of a race, and deadlines that nobody could have met, open no breaker.
func TestWhatIsNobodysFaultOpensNoBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 1)
		x.warm()
		slow := fails(500*time.Millisecond, hook.HTTPStatus, breaker.ServerError)
		for range 20 {
			x.call(Repeat{Safe: true}, slow, says(0, true))
			x.attempts()
		}
		e := x.target.Endpoints()[0]
		if s := e.Health(); s.State != breaker.Closed {
			t.Errorf("after lost hedges: %+v", s)
		}
	})
	for _, row := range []struct {
		name       string
		end        result
		late       time.Duration
		fair, lost bool
		want       breaker.Result
	}{
		{"timed out", result{kind: breaker.TimedOut}, 0, true, false, breaker.Failure},
		{"timed out, lost", result{kind: breaker.TimedOut}, 0, true, true, breaker.Failure},
		{"a deadline that is too short", result{kind: breaker.TimedOut}, 0, false, false, breaker.Excluded},
		{"F33 this process stood still", result{kind: breaker.TimedOut}, 2 * time.Second, true, false, breaker.Excluded},
		{"refused, lost", result{kind: breaker.Refused}, 0, true, true, breaker.ConnectFailure},
		{"F33 or hardly", result{kind: breaker.TimedOut}, stoodStill, true, false, breaker.Failure},
		{"reset", result{kind: breaker.Reset}, 0, true, false, breaker.Failure},
		{"500, late", result{kind: breaker.ServerError}, 2 * time.Second, true, false, breaker.Failure},
		{"refused where the time was short", result{kind: breaker.Refused}, 0, false, false, breaker.ConnectFailure},
		{"denied", result{kind: breaker.Denied}, 0, true, false, breaker.Success},
		{"allowed, lost", result{kind: breaker.Allowed}, 0, true, true, breaker.Excluded},
		{"429", result{kind: breaker.TooManyRequests}, 0, true, false, breaker.Excluded},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := row.end.judge(row.late, row.fair, row.lost); got != row.want {
				t.Errorf("%v, want %v", got, row.want)
			}
		})
	}
}

// A denial that is in doubt, in a race with a hedge, stands unless plain JSON brings
// a verdict.
func TestMisreadDenialAmongTwins(t *testing.T) {
	denies := reply{30 * time.Millisecond, result{err: &codec.AnswerError{Denies: true}, kind: breaker.BadAnswer, doubtful: true}}
	fast := denies
	fast.after = time.Millisecond
	broken := fails(time.Millisecond, hook.HTTPStatus, breaker.ServerError)
	safe, denyWins := Repeat{Safe: true}, Repeat{Safe: true, DenyWins: true}
	for _, row := range []struct {
		name    string
		repeat  Repeat
		replies []reply // of the first, the hedge, the one in plain JSON
		denied  bool
	}{
		{"the hedge allows in the same form, plain JSON fails", safe, []reply{denies, says(100*time.Millisecond, true), broken}, true},
		{"the hedge allows in the same form first", safe, []reply{denies, says(40*time.Millisecond, true), {60 * time.Millisecond, broken.result}}, true},
		{"plain JSON allows", safe, []reply{denies, says(100*time.Millisecond, true), says(0, true)}, false},
		{"the hedge denies, plain JSON fails", safe, []reply{never, fast, broken}, true},
		{"the allow that waits is in the same form", denyWins, []reply{denies, says(time.Millisecond, true), broken}, true},
		{"and plain JSON is late", denyWins, []reply{denies, says(time.Millisecond, true), never}, true},
		{"and plain JSON allows", denyWins, []reply{denies, says(time.Millisecond, true), says(200*time.Millisecond, true)}, false},
		{"the allow that waits is in plain JSON", denyWins, []reply{{200 * time.Millisecond, denies.result}, fast, says(0, true)}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newTable(t, 2)
				x.warm()
				resp, _, err := x.call(row.repeat, row.replies...)
				x.attempts()
				var denial *codec.AnswerError
				if row.denied != errors.As(err, &denial) || !row.denied && (err != nil || !resp.Allowed) {
					t.Errorf("allowed %v, error %v", resp.Allowed, err)
				}
			})
		})
	}
}

// Twins that contradict each other are counted.
func TestDisagreement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 2)
		x.warm()
		x.call(Repeat{Safe: true}, says(500*time.Millisecond, false), says(0, true))
		x.losers.Wait()
		if n := x.target.Stats().Disagreements; n != 1 {
			t.Errorf("%d disagreements", n)
		}
	})
}

// A webhook that does not read what it was sent is sent plain JSON, in the same call
// if there are no side effects. That opens no breaker and takes no budget.
func TestMisread(t *testing.T) {
	misread := func(r reply) reply {
		r.doubtful = true
		return r
	}
	unsupported := misread(fails(time.Millisecond, hook.HTTPStatus, breaker.ClientError))
	denies := misread(reply{time.Millisecond, result{err: &codec.AnswerError{Denies: true}, kind: breaker.BadAnswer}})
	for _, row := range []struct {
		name    string
		repeat  Repeat
		replies []reply
		plain   []bool
		cause   hook.Cause
		denied  bool
		refused bool // the form, for the calls to come
	}{
		{name: "415", repeat: Repeat{Safe: true}, replies: []reply{unsupported, says(0, true)}, plain: []bool{false, true}, refused: true},
		{name: "a denial without uid is no verdict in this form", repeat: Repeat{Safe: true}, replies: []reply{denies, says(0, true)}, plain: []bool{false, true}, refused: true},
		{name: "nor in plain JSON, where it stands", repeat: Repeat{Safe: true}, replies: []reply{denies}, plain: []bool{false, true}, denied: true},
		{name: "it stands if plain JSON brings no verdict", repeat: Repeat{Safe: true}, replies: []reply{denies, unsupported}, plain: []bool{false, true}, denied: true},
		{name: "nor one in time", repeat: Repeat{Safe: true}, replies: []reply{denies, never}, plain: []bool{false, true}, denied: true, refused: true},
		{name: "nor may be asked", replies: []reply{denies}, plain: []bool{false}, denied: true, refused: true},
		{name: "what fails in plain JSON too is not the form's fault", repeat: Repeat{Safe: true}, replies: []reply{unsupported}, plain: []bool{false, true}, cause: hook.HTTPStatus},
		{name: "a later attempt in plain JSON shows it", repeat: Repeat{Safe: true, Failures: true}, replies: []reply{unsupported, reset, says(0, true)}, plain: []bool{false, true, true}, refused: true},
		{name: "not with side effects", replies: []reply{unsupported, says(0, true)}, plain: []bool{false}, cause: hook.HTTPStatus, refused: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newTable(t, 1)
				_, _, err := x.call(row.repeat, row.replies...)
				if x.attempts(); !slices.Equal(x.plain, row.plain) {
					t.Errorf("sent plain: %v, want %v", x.plain, row.plain)
				}
				var denial *codec.AnswerError
				switch {
				case row.cause != "":
					wantCause(t, err, row.cause)
				case errors.As(err, &denial) != row.denied:
					t.Errorf("the error is %v", err)
				}
				want := Stats{Attempts: int64(len(row.plain)), Retries: int64(len(row.plain) - 1)}
				if row.refused {
					want.Misread = 1
				}
				if s := x.target.Stats(); s != want {
					t.Errorf("%+v, want %+v", s, want)
				}
				if refused := x.message.has(Misread); refused != row.refused {
					t.Errorf("the form is refused: %v", refused)
				}
			})
		})
	}
}

// notes is an Observer that keeps what it is told beside of attempts.
type notes struct {
	Silent
	mu  sync.Mutex
	all []string
	was Switch
}

func (n *notes) note(text string, owner hook.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, text+" "+owner.Name)
}

func (n *notes) Refused(_ context.Context, owner hook.ID) { n.note("refused", owner) }
func (n *notes) Misread(_ context.Context, owner hook.ID) { n.note("misread", owner) }
func (n *notes) Switched(_ context.Context, s Switch) {
	n.note("switched", s.Owner)
	n.was = s
}

// An Observer is notified of a wording that is not read and of what is sent from then
// on; of that also where an answer says it.
func TestObserverOfWordings(t *testing.T) {
	unread := fails(time.Millisecond, hook.HTTPStatus, breaker.ClientError)
	unread.doubtful = true
	offers := says(0, true)
	offers.heard = &Switch{Reads: "Protobuf"}
	synctest.Test(t, func(t *testing.T) {
		n := &notes{}
		x := newTable(t, 1)
		x.observer, x.message.switches = n, true
		x.call(Repeat{Safe: true}, unread, says(0, true))
		if !slices.Equal(n.all, []string{"misread owner", "switched owner"}) || n.was.Target != x.target || n.was.Reads != "JSON" || !errors.Is(n.was.Err, unread.err) {
			t.Errorf("of a misreading: %q, %+v", n.all, n.was)
		}
		n.all = nil
		x.call(Repeat{}, offers)
		if !slices.Equal(n.all, []string{"switched owner"}) || n.was.Target != x.target || n.was.Reads != "Protobuf" || n.was.Err != nil {
			t.Errorf("of an offer: %q, %+v", n.all, n.was)
		}
	})
}

// What a step has found out is learned, and told, although what it wanted to do next is
// not to be had.
func TestLearnedAlthoughDenied(t *testing.T) {
	unread := fails(time.Millisecond, hook.HTTPStatus, breaker.ClientError)
	unread.doubtful = true
	status := fails(0, hook.HTTPStatus, breaker.ServerError)
	status.status = 500
	t.Run("no Endpoint for the plain wording", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := &notes{}
			x := newTable(t, 1)
			x.observer, x.message.switches = n, true
			x.before = func(*Endpoint) { x.target.endpoints.Store(new([]*Endpoint)) }
			_, _, err := x.call(Repeat{Safe: true}, unread)
			wantCause(t, err, hook.HTTPStatus)
			if !slices.Equal(n.all, []string{"misread owner", "switched owner"}) || !errors.Is(n.was.Err, unread.err) {
				t.Errorf("%q, %+v", n.all, n.was)
			}
		})
	})
	t.Run("no budget for a retry", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := &notes{}
			x := newTable(t, 1)
			for x.target.callers.of("", time.Now()).budget.take(time.Now()) {
			}
			x.observer = n
			_, _, err := x.call(Repeat{Safe: true, Failures: true}, unread, status)
			wantCause(t, err, hook.HTTPStatus)
			if got := x.attempts(); got != 2 || !x.message.has(Blameless) || !slices.Equal(n.all, []string{"refused owner"}) {
				t.Errorf("%d attempts, learned %v, notified of %q", got, x.message.lessons, n.all)
			}
		})
	})
}

// An error says how long the call took.
func TestElapsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 1)
		for want, r := range map[time.Duration]reply{time.Second: never, 300 * time.Millisecond: fails(300*time.Millisecond, hook.HTTPStatus, breaker.ServerError)} {
			_, _, err := x.call(Repeat{}, r)
			if call, ok := errors.AsType[*hook.CallError](err); !ok || call.Elapsed != want {
				t.Errorf("%v: it took %v, want %v", err, call.Elapsed, want)
			}
		}
	})
}

// How long answers take is known of those that came, or were waited for to the end: not
// of attempts that nobody got, or that broke.
func TestLatencyIsOfAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 1)
		x.target.unspared = true
		shed := reply{0, result{err: &hook.CallError{Cause: hook.Shed, Err: errNoSlot}, kind: breaker.NotSent, unsent: true}}
		for _, r := range []reply{reset, refused, shed} {
			x.call(Repeat{}, r)
		}
		if got := x.target.Latency(); got.Attempts != 0 {
			t.Errorf("%+v", got)
		}
		for _, r := range []reply{says(0, false), malformed, never} {
			x.call(Repeat{}, r)
		}
		if got := x.target.Latency(); got.Attempts != 3 {
			t.Errorf("%+v", got)
		}
	})
}

// What fails in the plain wording, too, is the Target's failure.
func TestPlainFailureCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 1)
		unread := fails(time.Millisecond, hook.HTTPStatus, breaker.ServerError)
		unread.doubtful = true
		x.call(Repeat{Safe: true}, unread)
		if got := x.target.Endpoints()[0].Health(); x.attempts() != 2 || got.Failures != 1 {
			t.Errorf("of %d attempts: %+v", x.attempts(), got)
		}
	})
}

// A retry is paid for when it begins to wait for its turn, and counted once.
func TestRetriesArePaidBeforeTheirPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 1)
		x.call(Repeat{Safe: true, Failures: true}, malformed, malformed, says(0, true))
		if s := x.target.Stats(); s != (Stats{Attempts: 3, Retries: 2}) {
			t.Errorf("%+v", s)
		}
		for x.target.callers.of("", time.Now()).budget.take(time.Now()) {
		}
		_, took, err := x.call(Repeat{Safe: true, Failures: true}, malformed, says(0, true))
		if wantCause(t, err, hook.BadAnswer); took != time.Millisecond {
			t.Errorf("a call without a budget took %v", took)
		}
		if s := x.target.Stats(); s != (Stats{Attempts: 4, Retries: 2, BudgetRefused: 1}) {
			t.Errorf("%+v", s)
		}
	})
}

// While a call pauses, and for as long as an attempt runs, it holds the Message.
func TestMessageIsHeldDuringAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 1)
		x.before = func(*Endpoint) {
			if n := x.message.count(0); n != 1 {
				t.Errorf("%d references as an attempt begins", n)
			}
		}
		x.call(Repeat{Safe: true, Failures: true}, malformed, malformed, says(0, true))
		x.attempts()
		if n := x.message.count(0); n != 0 {
			t.Errorf("%d references after the end", n)
		}
	})
}

// A webhook of which every call is slow gets no more hedges than tell that; retries have
// no such limit.
func TestHedgesAreForTheFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 1)
		for range 400 {
			x.call(Repeat{Safe: true}, says(10*time.Millisecond, true))
		}
		<-time.After(3 * budgetSlot) // these are no longer among those that hedges are compared with
		for range 30 {               // in less than a second
			x.call(Repeat{Safe: true}, says(12*time.Millisecond, true), says(time.Millisecond, true))
		}
		x.losers.Wait()
		if n := x.target.Stats().Hedges; n == 0 || n > slowLeast {
			t.Errorf("%d hedges", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 1)
		x.target.unspared = true
		for range 400 {
			x.call(Repeat{}, says(0, true))
		}
		<-time.After(3 * budgetSlot)
		for range 20 {
			x.call(Repeat{Safe: true, NoHedge: true}, reset, says(0, true))
		}
		if n := x.target.Stats().Retries; n != 20 {
			t.Errorf("%d retries", n)
		}
	})
}

// Who asks makes a call alone, whatever its answer, as long as that is there in time: no
// other goroutine has a part in it. What follows a failure, or takes longer, is others'.
func TestWhoAsksIsAlone(t *testing.T) {
	for _, row := range []struct {
		name   string
		reply  reply
		handed int64
	}{
		{"an allow", says(5*time.Millisecond, true), 0},
		{"a denial", says(5*time.Millisecond, false), 0},
		{"a failure", malformed, 0},
		{"a failure that is repeated", reset, 1},
		{"an answer that takes longer", says(50*time.Millisecond, true), 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			x := newTable(t, 1)
			x.warm()
			x.handed.Store(0)
			x.call(Repeat{Safe: true}, row.reply, says(50*time.Millisecond, true))
			if x.losers.Wait(); x.handed.Load() != row.handed {
				t.Errorf("%s: %d steps were handed to others, want %d", row.name, x.handed.Load(), row.handed)
			}
			if timed := x.last.timer != nil; timed && row.handed == 0 {
				t.Errorf("%s: an alarm was set, which is for others", row.name)
			}
		})
	}
}

// There is no hedge that could begin only when the call is over.
func TestNoHedgeAtTheDeadline(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	u := supply{call: &Call{Repeat: Repeat{Safe: true}}, caller: &caller{}}
	for range recentWarm {
		u.caller.durations(0).record(now.Add(-recentRefresh), time.Millisecond)
	}
	for left, want := range map[time.Duration]time.Duration{hedgeFloor: 0, hedgeFloor + 1: hedgeFloor} {
		u.call.Deadline = now.Add(left)
		e := event{now: now}
		if u.plan(&e); e.hedge != want {
			t.Errorf("with %v left it is hedged after %v, want %v", left, e.hedge, want)
		}
	}
}

// Who asks waits for the first attempt itself if that is to take no longer than it does
// no harm to others: as long as a hedge would wait, or a moment where that is not known.
func TestPatience(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for _, row := range []struct {
		name  string
		usual time.Duration // of attempts so far; 0: there were none
		left  time.Duration
		size  int
		want  time.Duration
	}{
		{"as long as usual", 4 * time.Millisecond, time.Second, maxHasty, 4*time.Millisecond + 4*time.Millisecond/16},
		{"nothing is known", 0, time.Second, 0, hedgeFloor},
		{"slow", maxPatience, time.Second, 0, 0},
		{"large", 4 * time.Millisecond, time.Second, maxHasty + 1, 0},
		{"hardly any time", 0, maxPatience, 0, 0},
	} {
		u := supply{call: &Call{Deadline: now.Add(row.left)}, caller: &caller{}, size: row.size}
		for range recentWarm {
			if row.usual > 0 {
				u.caller.durations(row.size).record(now.Add(-recentRefresh), row.usual)
			}
		}
		if u.plan(&event{now: now}); u.patience != row.want {
			t.Errorf("%s: %v, want %v", row.name, u.patience, row.want)
		}
	}
}

// Of a circuit that an attempt changes its observer is notified before the attempt is
// made, and without the lock of the race: it may take its time.
func TestCircuitsAreToldWithoutTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 0)
		var told []breaker.State
		settings := breaker.Settings{OpenTime: time.Second, Changed: func(c breaker.Change) {
			if r := x.last; !r.mu.TryLock() {
				t.Errorf("to %v under the lock of the race", c.To)
			} else {
				r.mu.Unlock()
			}
			told = append(told, c.To)
		}}
		x.target.endpoints.Store(&[]*Endpoint{newEndpoint(&origin{}, netip.MustParseAddrPort("10.0.0.1:443"), settings)})
		for range 3 {
			x.call(Repeat{}, refused)
		}
		<-time.After(2 * time.Second)
		x.before = func(*Endpoint) {
			if want := []breaker.State{breaker.Open, breaker.HalfOpen}; !slices.Equal(told, want) {
				t.Errorf("told %v, want %v", told, want)
			}
		}
		x.call(Repeat{}, says(0, true))
	})
}
