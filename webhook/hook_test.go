// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// told remembers the answer.
type told struct{ err error }

func (r *told) Answered(_ uint64, _ codec.Response, err error) { r.err = err }

// client is a Client that remembers the calls.
type client struct{ calls []transport.Call }

func (c *client) Start(_ context.Context, call transport.Call, _ hook.Receiver) hook.Outstanding {
	call.Message.Retain()
	c.calls = append(c.calls, call)
	return nil
}

const received = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":{"group":"","version":"v1","kind":"Pod"},` +
	`"resource":{"group":"","version":"v1","resource":"pods"},"name":"p","namespace":"shop","operation":"CREATE","userInfo":{"username":"ann"},"object":{"metadata":{"name":"p"}}}}`

// view returns the View of the review, of which the caller has the only reference. Its
// memory is overwritten once it is released.
func view(t *testing.T) *hook.View {
	t.Helper()
	body := codec.NewBody([]byte(received), func(data []byte) { clear(data) })
	review := codec.AcquireReview()
	if err := review.Decode(body); err != nil {
		t.Fatal(err)
	}
	body.Release()
	defer codec.ReleaseReview(review)
	return hook.NewView(hook.Source{Review: review, Cluster: "east"})
}

func newTarget(t *testing.T) *transport.Target {
	t.Helper()
	target, err := transport.NewTarget(transport.TargetSpec{URL: "https://policy.example.com/"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	return target
}

// A webhook of none of whose versions anything is known is not called.
func TestNoVersion(t *testing.T) {
	v, c, to := view(t), &client{}, &told{}
	defer v.Release()
	h := &Hook{Target: newTarget(t), Client: c}
	h.Ask(t.Context(), hook.Question{View: v}, hook.NewReceiver(to, 0))
	var call *hook.CallError
	if !errors.As(to.err, &call) || call.Cause != hook.NotConvertible || len(c.calls) > 0 {
		t.Errorf("C29 %v, %d calls", to.err, len(c.calls))
	}
	if _, err := h.Explain(v); !errors.As(err, &call) {
		t.Errorf("explained as %v", err)
	}
}

// A call is what the configuration and the Question say.
func TestCallIsAsAsked(t *testing.T) {
	v, c := view(t), &client{}
	defer v.Release()
	id := hook.ID{Configuration: "policies", Name: "a.example.com"}
	h := &Hook{ID: id, Target: newTarget(t), Version: codec.V1beta1, Repeat: transport.Repeat{NoHedge: true, DenyWins: true}, Compat: codec.APIServer, Client: c}
	q := hook.Question{View: v, Deadline: time.Unix(1_000_000, 0), Timeout: time.Second, Over: new(atomic.Bool)}
	for _, flags := range []struct{ repeatable, shadow, wait bool }{{}, {repeatable: true}, {shadow: true}, {wait: true}} {
		q.Repeatable, q.Shadow, q.Wait = flags.repeatable, flags.shadow, flags.wait
		h.Ask(t.Context(), q, hook.NewReceiver(&told{}, 0))
		got := c.calls[len(c.calls)-1]
		sent := got.Message.(*Message)
		if want := (codec.Expectation{UID: v.UID, Version: codec.V1beta1, Compat: codec.APIServer}); !reflect.DeepEqual(sent.Want, want) || sent.form != (codec.Form{Version: codec.V1beta1}) {
			t.Errorf("the answer is to fit %+v, in %+v", sent.Want, sent.form)
		}
		sent.Release()
		got.Message = nil
		want := transport.Call{
			Target: h.Target, Cluster: "east", Resource: "/pods", Shadow: flags.shadow, Deadline: q.Deadline, Timeout: q.Timeout, Wait: flags.wait, Over: q.Over,
			Repeat: transport.Repeat{Safe: flags.repeatable, NoHedge: true, DenyWins: true}, Owner: id,
		}
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if h.Where() != "https://policy.example.com/" {
		t.Error(h.Where())
	}
}

// What a webhook is sent that does not read what it offers is the review as it is by
// then, and is made only when it is sent. It is there as long as the call is.
func TestPlainOfAMutatedReview(t *testing.T) {
	v := view(t)
	mutated := v.Mutated(&codec.Object{Raw: []byte(`{"mutated":true}`)})
	c, target := &client{}, newTarget(t)
	negotiationOf(target).hear(saying(codec.MediaTypeProtobuf, ""), true, time.Now)
	h := &Hook{Target: target, Client: c, Version: codec.V1}
	h.Ask(t.Context(), hook.Question{View: mutated}, hook.NewReceiver(&told{}, 0))
	mutated.Release()
	message := c.calls[0].Message.(*Message)
	for plain, want := range map[bool]codec.Encoding{false: codec.Protobuf, true: codec.JSON} {
		payload, err := message.Payload(plain)
		if err != nil || !strings.Contains(payload.Fields, want.ContentType()) || !strings.Contains(string(payload.Body), `{"mutated":true}`) {
			t.Errorf("plain %v: %s%q, %v", plain, payload.Fields, payload.Body, err)
		}
		if again, _ := message.Payload(plain); &again.Body[0] != &payload.Body[0] {
			t.Errorf("plain %v: it is made twice", plain)
		}
	}
	if message.Len() != message.Body.Len() {
		t.Errorf("%d bytes", message.Len())
	}
	uid := message.Want.UID
	if string(uid) != "u-1" {
		t.Errorf("the uid is %q", uid)
	}
	message.Release()
	if string(uid) == "u-1" {
		t.Error("the review is held although nobody calls")
	}
}

// counting is an Account without turns that counts what is held, and has room for so
// many bytes.
type counting struct{ held, room int }

func (*counting) LookUp(string) (done func(), err error) { return func() {}, nil }

func (c *counting) Turn(string, int, time.Time) (func(), error) { return func() {}, nil }
func (c *counting) Freed(bytes int)                             { c.held -= bytes }

func (c *counting) Hold(_ string, body *codec.Body, _ bool) error {
	if !body.Charged() {
		if c.held+body.Len() > c.room {
			return errors.New("no room")
		}
		c.held += body.Len()
		body.Charge(c)
	}
	return nil
}

// What is sent in place of a form that the webhook does not read counts as that form
// does, until nobody holds it, and is not sent where there is no room for it.
func TestPlainIsCounted(t *testing.T) {
	for full, want := range map[bool]hook.Cause{false: "", true: hook.Shed} {
		account := &counting{room: 1 << 20}
		v := view(t)
		v.Account = account
		mutated := v.Mutated(&codec.Object{Raw: []byte(`{"mutated":true}`)})
		m, err := (&Hook{Target: newTarget(t)}).Message(&hook.Question{View: mutated}, codec.Form{Version: codec.V1, Encoding: codec.Protobuf})
		if err != nil {
			t.Fatal(err)
		}
		mutated.Release()
		if full {
			account.room = m.Len()
		}
		payload, err := m.Payload(true)
		var call *hook.CallError
		if errors.As(err, &call) != (want != "") || want != "" && call.Cause != want {
			t.Errorf("full %v: %v", full, err)
		}
		if sum := m.Len() + len(payload.Body); account.held != sum {
			t.Errorf("%d bytes of %d are counted", account.held, sum)
		}
		if m.Release(); account.held != 0 {
			t.Errorf("%d bytes are counted at the end", account.held)
		}
	}
}

// There is nothing to send in place of a form that is pinned, and nothing to learn
// about it.
func TestPinnedFormIsNotNegotiated(t *testing.T) {
	v := view(t)
	defer v.Release()
	now := time.Now()
	for encoding, want := range map[Encoding]bool{Protobuf: false, Auto: true} {
		h := &Hook{Target: newTarget(t), Wire: Wire{Encoding: encoding}}
		m, err := h.Message(&hook.Question{View: v}, codec.Form{Version: codec.V1, Encoding: codec.Protobuf})
		if err != nil {
			t.Fatal(err)
		}
		if m.IsNegotiated(now) != want || (m.Learn(transport.Misread, now) != nil) != want {
			t.Errorf("%v: negotiated %v", encoding, m.IsNegotiated(now))
		}
		m.Release()
	}
}

// A Message holds the review until its last reference is gone, and then nothing: the
// next call has nothing of it.
func TestMessageHoldsTheReview(t *testing.T) {
	v := view(t)
	m := messageTo(t, &Hook{Target: new(transport.Target)}, v, codec.Form{Version: codec.V1})
	v.Release() // by who has made the call
	m.Retain()
	m.Release()
	if p, err := m.Payload(false); err != nil || string(p.Body) != received {
		t.Errorf("%q, %v", p.Body, err)
	}
	if m.Release(); m.Body != nil || m.Want.UID != nil || m.question.View != nil || m.target != nil || m.negotiation != nil {
		t.Errorf("it is kept for the next call: %+v", m.content)
	}
}

// Messages are taken from a pool.
func TestMessageAllocations(t *testing.T) {
	if raced {
		t.Skip("the race detector empties pools")
	}
	v := view(t)
	defer v.Release()
	h, q := &Hook{Target: new(transport.Target)}, &hook.Question{View: v}
	once := func() {
		m, err := h.Message(q, codec.Form{Version: codec.V1})
		if err != nil {
			t.Fatal(err)
		}
		m.Release()
	}
	if n := testing.AllocsPerRun(100, once); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
