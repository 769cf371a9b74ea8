// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"errors"
	"net/http"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// asked returns an admission until a deadline, whose webhooks have been asked.
func asked(d *Dispatcher, deadline time.Duration, webhooks ...*chain.Entry) *admission {
	a := &admission{Request: Request{Cluster: &chain.Cluster{}, Review: &codec.Review{}, Deadline: time.Now().Add(deadline)}, batch: d.newBatch(), dispatcher: d}
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
			a.join()
			if took := time.Since(begin); took != c.want || a.outcomes[1].Result != Abandoned {
				t.Errorf("denied at %v: waited %v, want %v; outcomes are %+v", c.denial, took, c.want, a.outcomes)
			}
		})
	}
}

// Who denies second does not have others waited for any longer.
func TestGraceBeginsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Dispatcher{grace: 100 * time.Millisecond}
		a := asked(d, time.Minute, &chain.Entry{ID: hook.ID{Name: "a"}}, &chain.Entry{ID: hook.ID{Name: "b"}}, &chain.Entry{ID: hook.ID{Name: "never"}})
		begin := time.Now()
		time.AfterFunc(10*time.Millisecond, func() { deny(a.batch.list[0]) })
		time.AfterFunc(60*time.Millisecond, func() { deny(a.batch.list[1]) })
		a.join()
		if took := time.Since(begin); took != 110*time.Millisecond || a.outcomes[1].Result != Denied || a.outcomes[2].Result != Abandoned {
			t.Errorf("waited %v; outcomes are %+v", took, a.outcomes)
		}
	})
}

// Of the answers that are there when time is up each counts as what it says, none of those
// who were given up on, and no allow takes a denial back.
func TestAnswersWhenTimeIsUp(t *testing.T) {
	for name, c := range map[string]struct {
		denied  bool
		present []codec.Response // in the order of arrival
		given   bool             // up on who answers
		want    bool
		settled int
	}{
		"nobody":                        {false, nil, false, false, 0},
		"nobody, after a denial":        {true, nil, false, true, 0},
		"an allow":                      {false, []codec.Response{{Allowed: true}}, false, false, 1},
		"an allow, after a denial":      {true, []codec.Response{{Allowed: true}}, false, true, 1},
		"a denial":                      {false, []codec.Response{{Code: 403}}, false, true, 1},
		"an allow behind a denial":      {false, []codec.Response{{Code: 403}, {Allowed: true}}, false, true, 2},
		"a denial of who was given up":  {false, []codec.Response{{Code: 403}}, true, false, 0},
		"an allow of who was given up":  {true, []codec.Response{{Allowed: true}}, true, true, 0},
		"two denials, after one before": {true, []codec.Response{{Code: 403}, {Code: 403}}, false, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			a := asked(&Dispatcher{}, time.Minute, &chain.Entry{}, &chain.Entry{})
			for i, resp := range c.present {
				a.batch.list[i].resp, a.batch.list[i].waiting = resp, !c.given
				a.batch.answers <- a.batch.list[i]
			}
			if got := a.hearPresent(c.denied); got != c.want || len(a.outcomes) != c.settled {
				t.Errorf("denied is %v, outcomes are %+v", got, a.outcomes)
			}
		})
	}
}

// A patch is applied if it comes with an allow, and with no error. What comes with a patch
// that is refused is nothing but warnings and annotations.
func TestPatchNeedsAnAllow(t *testing.T) {
	const fine, wrong = `[{"op":"add","path":"/spec/a","value":1}]`, `[{"op":"remove","path":"/nope"}]`
	late := &hook.CallError{Cause: hook.Timeout, Err: errors.New("late")}
	for name, c := range map[string]struct {
		phase   chain.Phase
		mode    chain.Mode
		resp    codec.Response
		err     error
		patched bool
		want    Result
	}{
		"an allow":              {chain.Mutating, chain.Enforce, codec.Response{Allowed: true, Patch: []byte(fine)}, nil, true, Allowed},
		"an allow, validating":  {chain.Validating, chain.Enforce, codec.Response{Allowed: true, Patch: []byte(fine)}, nil, false, Allowed},
		"a denial":              {chain.Mutating, chain.Enforce, codec.Response{Code: 403, Patch: []byte(fine)}, nil, false, Denied},
		"a denial, Warn":        {chain.Mutating, chain.Warn, codec.Response{Code: 403, Patch: []byte(fine)}, nil, false, Softened},
		"no answer":             {chain.Mutating, chain.Enforce, codec.Response{Allowed: true, Patch: []byte(fine)}, late, false, Failed},
		"a patch that is wrong": {chain.Mutating, chain.Enforce, codec.Response{Allowed: true, Patch: []byte(wrong), Warnings: []string{"old"}, DroppedAnnotations: 2}, nil, false, Refused},
	} {
		t.Run(name, func(t *testing.T) {
			a := asked(&Dispatcher{}, time.Minute, &chain.Entry{ID: hook.ID{Name: "w"}, Mode: c.mode})
			a.Phase, a.Review.Operation = c.phase, codec.Create
			if err := codec.ScanObject(&a.Review.Object, []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{}}`)); err != nil {
				t.Fatal(err)
			}
			a.subject = newSubject(a.Request, nil, nil)
			inv := a.batch.list[0]
			inv.resp, inv.err = c.resp, c.err
			o := a.hear(inv)
			if patched := len(a.patch) > 0; patched != c.patched || a.patches > 0 != c.patched || o.Operations > 0 != c.patched || o.Result != c.want {
				t.Errorf("patch %s of %d, outcome %+v", a.patch, a.patches, o)
			}
			want := c.resp
			if o.Err != nil {
				want = codec.Response{Warnings: c.resp.Warnings, DroppedAnnotations: c.resp.DroppedAnnotations}
			}
			if diff := cmp.Diff(want, o.Response); diff != "" {
				t.Errorf("the answer is (-want +got)\n%s", diff)
			}
		})
	}
}

// Each round has a uid of its own, of version 4.
func TestRenew(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	a := &admission{Request: Request{Cluster: &chain.Cluster{}, Review: &codec.Review{UID: []byte("u-1")}}}
	a.subject = newSubject(a.Request, nil, nil)
	seen := map[string]bool{}
	for range 100 {
		a.renew()
		if uid := string(a.subject.UID); !form.MatchString(uid) || seen[uid] {
			t.Fatalf("the uid is %q", uid)
		}
		seen[string(a.subject.UID)] = true
	}
	if string(a.Review.UID) != "u-1" {
		t.Errorf("the review has the uid %s", a.Review.UID)
	}
}

// A denial that is there when the deadline has passed, because the process stood
// still, is heard.
func TestJoinHearsWhatIsThere(t *testing.T) {
	d := &Dispatcher{}
	for range 50 { // a select chooses at random
		a := asked(d, -time.Second, &chain.Entry{ID: hook.ID{Name: "a"}, FailurePolicy: chain.Ignore}, &chain.Entry{ID: hook.ID{Name: "b"}, FailurePolicy: chain.Ignore})
		deny(a.batch.list[1])
		a.join()
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
	a.settleUnheard(false)
	second.waiting = true
	deny(first)
	deny(second)
	a.join()
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
			a := &admission{Request: Request{Deadline: time.Now().Add(c.left)}, dispatcher: &Dispatcher{impatience: s}}
			deadline, full := a.until(&chain.Entry{FailurePolicy: c.policy, Timeout: c.timeout}, c.following)
			if got := time.Until(deadline); got != c.want || full != c.full {
				t.Errorf("%+v: it gets %v of %v", c, got, full)
			}
		})
	}
}
