// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher/overload"
	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
)

// witness remembers what it is told.
type witness struct {
	decisions []string

	mu      sync.Mutex
	shadows []string
}

// Observe implements Observer.
func (w *witness) Observe(_ context.Context, r *Record) {
	w.decisions = append(w.decisions, r.Cluster.Name+" "+r.Verdict.Decision().String())
}

// ObserveShadow implements ShadowObserver.
func (w *witness) ObserveShadow(_ context.Context, r *ShadowRecord) {
	text := r.Cluster.Name + " " + r.Phase.String() + " " + r.Outcome.Webhook.Name + " " + r.Outcome.Result.String()
	if r.Dropped {
		text += " dropped"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shadows = append(w.shadows, text)
}

// asking is a Hook made of a function.
type asking func(hook.Question, hook.Receiver)

func (a asking) Ask(_ context.Context, q hook.Question, to hook.Receiver) hook.Outstanding {
	a(q, to)
	return nil
}

// watched is a Dispatcher with who is told of it, and what it logs.
func watched(t *testing.T) (*Dispatcher, *witness, *bytes.Buffer) {
	t.Helper()
	told, log := &witness{}, &bytes.Buffer{}
	d, err := New(Config{
		Limits: overload.Limits{ShadowCalls: 2}, Observers: []Observer{told}, Shadows: []ShadowObserver{told},
		Logger: slog.New(slog.NewJSONHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return d, told, log
}

func request(w ...*chain.Entry) Request {
	return Request{
		Review:  &codec.Review{UID: []byte("u-1"), Operation: codec.Create, Body: codec.NewBody(nil, nil), Version: codec.V1},
		Cluster: &chain.Cluster{Name: "east", Validating: &chain.Chain{Webhooks: w}},
		Phase:   chain.Validating, Deadline: time.Now().Add(time.Minute),
	}
}

// A Verdict that is handed in again says nothing of its last admission, whatever that came
// to, and the memory of its Outcomes is used again.
func TestVerdictIsUsedAgain(t *testing.T) {
	d, _, _ := watched(t)
	everything, err := match.Compile(match.Spec{Rules: []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{"*"},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}},
	}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	admit := func(v *Verdict, resource string, answers ...codec.Response) string {
		var entries []*chain.Entry
		for _, resp := range answers {
			told := asking(func(_ hook.Question, to hook.Receiver) { to.Receive(resp, nil) })
			entries = append(entries, &chain.Entry{ID: hook.ID{Name: "a"}, Hook: told, Matcher: everything, Timeout: time.Second})
		}
		req := request()
		req.Cluster.Validating = (&chain.Chain{}).With(entries)
		req.Review.Resource.Resource = []byte(resource)
		if resource == "crash" {
			req.Cluster.Validating = nil
		}
		if resource == "validatingwebhookconfigurations" {
			req.Review.Resource.Group = []byte("admissionregistration.k8s.io")
		}
		d.Dispatch(t.Context(), req, v)
		return fmt.Sprintf("%+v %d %t %s", v.Response, len(v.Outcomes), v.Panicked, v.Bypass)
	}
	deny, allow := codec.Response{Code: 403, Message: "no"}, codec.Response{Allowed: true, Warnings: []string{"a"}}
	used := new(Verdict)
	for i, next := range []func(v *Verdict) string{
		func(v *Verdict) string { return admit(v, "pods", deny, allow, deny) },
		func(v *Verdict) string { return admit(v, "pods", codec.Response{Allowed: true}) },
		func(v *Verdict) string { return admit(v, "validatingwebhookconfigurations", deny) },
		func(v *Verdict) string { return admit(v, "pods", allow, allow) },
		func(v *Verdict) string { return admit(v, "pods") },
		func(v *Verdict) string { return admit(v, "crash") },
		func(v *Verdict) string { return admit(v, "pods", allow) },
	} {
		if got, want := next(used), next(new(Verdict)); got != want {
			t.Errorf("admission %d: %s, want %s", i, got, want)
		}
		if room := cap(used.Outcomes); (room >= 3) != (i < 5) {
			t.Errorf("admission %d leaves room for %d", i, room)
		}
	}
}

// A panic while deciding is a denial that everybody is told of, and its value,
// which may quote an object, is told nobody.
func TestPanicIsTold(t *testing.T) {
	const secret = "swordfish"
	d, told, log := watched(t)
	req := request()
	req.Cluster.Bypass = exempt.Compile(nil)
	req.Cluster.Validating = nil // no chain: a bug, as far as Dispatch knows
	var v Verdict
	d.Dispatch(t.Context(), req, &v)
	if v.Response.Allowed || v.Response.Code != 500 || !slices.Equal(told.decisions, []string{"east panicked"}) {
		t.Errorf("response %+v, told %q", v.Response, told.decisions)
	}
	for _, want := range []string{`"msg":"panic while deciding an admission"`, "nil pointer dereference", "goroutine ", `"msg":"admission denied","cluster":"east"`, `"uid":"u-1"`, `"decision":"panicked"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %s: %s", want, log.String())
		}
	}
	if strings.Contains(log.String(), secret) {
		t.Errorf("the log quotes the panic: %s", log.String())
	}
}

// A panic while calling is told by its type.
func TestPanicOfACallIsNotQuoted(t *testing.T) {
	const secret = "swordfish"
	d, _, log := watched(t)
	a := &admission{Request: request()}
	crashing := asking(func(hook.Question, hook.Receiver) { panic(secret) })
	inv := d.newBatch().add(&chain.Entry{ID: hook.ID{Name: "a"}, Hook: crashing}, 0, 0)
	d.start(t.Context(), inv, hook.Question{})
	v := Verdict{Outcomes: []Outcome{a.judge(inv, codec.Response{}, (<-inv.batch.answers).err, 1)}}
	d.recorder.record(t.Context(), &Record{Request: a.Request, Verdict: &v, Elapsed: time.Second})
	if text := log.String() + v.Outcomes[0].message(); strings.Contains(text, secret) || !strings.Contains(text, "a value of type string") {
		t.Errorf("told %s", text)
	}
}

// A review that cannot be judged is denied, logged and told.
func TestDecline(t *testing.T) {
	d, told, log := watched(t)
	var v Verdict
	d.Decline(t.Context(), request(), Defect{Code: 400, Message: "duplicate key /labels/secret", Logged: "duplicate key /labels"}, &v)
	if v.Response.Allowed || v.Response.Code != 400 || v.Response.Reason != "BadRequest" || v.Response.Message != "duplicate key /labels/secret" {
		t.Errorf("response %+v", v.Response)
	}
	if !strings.Contains(log.String(), `"error":"duplicate key /labels"`) || strings.Contains(log.String(), "secret") {
		t.Errorf("logged %s", log.String())
	}
	if d.Decline(t.Context(), request(), Defect{Code: 429, Message: "no memory"}, &v); v.Response.RetryAfterSeconds < 1 || v.Response.Reason != "TooManyRequests" {
		t.Errorf("response %+v", v.Response)
	}
	if !slices.Equal(told.decisions, []string{"east unreadable", "east unreadable"}) {
		t.Errorf("told %q", told.decisions)
	}
	if !strings.Contains(log.String(), `"msg":"admission denied","cluster":"east"`) || !strings.Contains(log.String(), `"uid":"u-1"`) {
		t.Errorf("logged %s", log.String())
	}
}

var errLate = &hook.CallError{Cause: hook.Timeout, Err: errors.New("late")}

// What a Shadow webhook would have done in mode Enforce is told, also that it was
// not asked.
func TestShadowIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		policy chain.FailurePolicy
		resp   codec.Response
		err    error
		want   string
	}{
		"allows":        {chain.Fail, codec.Response{Allowed: true}, nil, "allowed"},
		"denies":        {chain.Fail, codec.Response{Code: 403}, nil, "denied"},
		"fails":         {chain.Fail, codec.Response{}, errLate, "failed"},
		"fails, Ignore": {chain.Ignore, codec.Response{}, errLate, "failed_open"},
		"is refused":    {chain.Ignore, codec.Response{}, &codec.AnswerError{Denies: true}, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			later := make(chan hook.Receiver, 1)
			d, told, log := watched(t)
			a := d.newAdmission(t.Context(), request())
			silent := asking(func(_ hook.Question, to hook.Receiver) { later <- to })
			inv := d.newBatch().add(&chain.Entry{ID: hook.ID{Name: "a"}, Hook: silent, Mode: chain.Shadow, FailurePolicy: c.policy}, 0, 0)
			a.shadow(inv, a.question(inv, 0))
			a.shadow(inv, a.question(inv, 0)) // while the other is under way
			(<-later).Receive(c.resp, c.err)
			d.Wait()
			want := []string{"east validate a allowed dropped", "east validate a " + c.want}
			if !slices.Equal(told.shadows, want) {
				t.Errorf("told %q, want %q", told.shadows, want)
			}
			for _, line := range []string{`"msg":"shadow call dropped: too many under way"`, `"msg":"shadow webhook answered"`, fmt.Sprintf(`"outcome":%q,"allowed":%v`, c.want, c.resp.Allowed)} {
				if !strings.Contains(log.String(), line) {
					t.Errorf("logged %s, want %s", log, line)
				}
			}
		})
	}
}

// The Shadow calls of one cluster leave room for another's.
func TestShadowCallsAreShared(t *testing.T) {
	for _, c := range []struct{ said, calls int }{{8, 8}, {0, 256}} {
		testShadowCallsAreShared(t, c.said, c.calls)
	}
}

func testShadowCallsAreShared(t *testing.T, said, calls int) {
	later := make(chan hook.Receiver, calls)
	silent := asking(func(_ hook.Question, to hook.Receiver) { later <- to })
	told := &witness{}
	d, err := New(Config{
		Limits: overload.Limits{ShadowCalls: said}, Shadows: []ShadowObserver{told}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	shadows := func(cluster string) (made int) {
		told.shadows = nil // of those that are dropped
		for range 2 * calls {
			req := request()
			req.Cluster = &chain.Cluster{Name: cluster}
			a := d.newAdmission(t.Context(), req)
			inv := d.newBatch().add(&chain.Entry{ID: hook.ID{Name: "a"}, Hook: silent, Mode: chain.Shadow}, 0, 0)
			a.shadow(inv, a.question(inv, 0))
		}
		return 2*calls - len(told.shadows)
	}
	for round := range 2 {
		if east, west := shadows("east"), shadows("west"); east != calls/2 || west != calls/4 {
			t.Errorf("round %d: %d calls of east, %d of west", round, east, west)
		}
		for range calls/2 + calls/4 {
			(<-later).Receive(codec.Response{Allowed: true}, nil)
		}
		d.Wait()
	}
}

// The bytes of a review that a Shadow call outlives are counted until it has ended.
// Where there is no room for them it is not made; it takes no slot of an admission's.
func TestShadowHoldsBytes(t *testing.T) {
	type call struct {
		to   hook.Receiver
		view *hook.View
	}
	later := make(chan call, 4)
	d, err := New(Config{
		Limits: overload.Limits{Admissions: 1, Bytes: 100}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	slot, err := d.capacity.Admit("other", codec.NewBody(nil, nil), time.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer slot.Release()
	silent := asking(func(q hook.Question, to hook.Receiver) {
		if _, err := q.Payload(codec.Form{Version: codec.V1}); err != nil {
			t.Error(err)
		}
		later <- call{to, q.Retain()}
	})
	ask := func(size int) {
		req := request()
		req.Review.Body = codec.NewBody(make([]byte, size), nil)
		a := d.newAdmission(t.Context(), req)
		inv := d.newBatch().add(&chain.Entry{ID: hook.ID{Name: "a"}, Hook: silent, Mode: chain.Shadow}, 0, 0)
		if err := a.prepare(inv.webhook); err != nil {
			t.Error(err)
		}
		a.shadow(inv, a.question(inv, 0))
		a.release()
		codec.ReleaseReview(req.Review)
	}
	ask(101) // more than there is
	ask(20)
	ask(20)
	ask(20) // more than is left for this cluster
	if d.Held() != 40 {
		t.Errorf("%d bytes are held", d.Held())
	}
	for range 2 {
		call := <-later
		call.view.Release()
		call.to.Receive(codec.Response{Allowed: true}, nil)
	}
	if d.Wait(); d.Held() != 0 || len(later) != 0 {
		t.Errorf("%d bytes are held at the end", d.Held())
	}
}
