// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// told is a Receiver that remembers.
type told struct{ err error }

func (r *told) Receive(_ codec.Response, err error) { r.err = err }

// client is a Client that remembers the calls.
type client struct{ calls []transport.Call }

func (c *client) Start(_ context.Context, call transport.Call, _ hook.Receiver) {
	call.Message.Retain()
	c.calls = append(c.calls, call)
}

// unlimited is an Account without limits.
type unlimited struct{ hook.Account }

func (unlimited) Turn(string, int, time.Time) (func(), error) { return func() {}, nil }
func (unlimited) Hold(string, *codec.Body, bool) error        { return nil }

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
	return hook.NewView(hook.Source{Review: review, Cluster: "east", Account: unlimited{}})
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
	h.Ask(t.Context(), hook.Question{View: v}, to)
	var call *hook.CallError
	if !errors.As(to.err, &call) || call.Cause != hook.NotConvertible || len(c.calls) > 0 {
		t.Errorf("C29 %v, %d calls", to.err, len(c.calls))
	}
	if _, err := h.Explain(v.Review); !errors.As(err, &call) {
		t.Errorf("explained as %v", err)
	}
}

// What a webhook is sent that does not read what it offers is the review as it is by
// then, and is written only when it is sent. It is there as long as the call is.
func TestPlainOfAMutatedReview(t *testing.T) {
	v := view(t)
	mutated := v.Mutated(&codec.Object{Raw: []byte(`{"mutated":true}`)})
	v.Release()
	c, form := &client{}, codec.Form{Version: codec.V1, Encoding: codec.Protobuf}
	q := hook.Question{View: mutated}
	pinned, learned := &Hook{Wire: Wire{Encoding: Protobuf}}, &Hook{Target: newTarget(t), Client: c, Version: codec.V1}
	if plain := pinned.plain(&q, form); !plain.IsZero() {
		t.Error("there is something to send in place of a form that is pinned")
	}
	plain := learned.plain(&q, form)
	learned.Ask(t.Context(), q, &told{})
	call := c.calls[0]
	mutated.Release()
	body, err := plain.Body()
	if err != nil || !strings.Contains(string(body.Bytes()), `"object":{"mutated":true}`) {
		t.Errorf("%q, %v", body.Bytes(), err)
	}
	uid := call.Message.(*Message).Want.UID
	if string(uid) != "u-1" {
		t.Errorf("the uid is %q", uid)
	}
	call.Message.Release()
	if string(uid) == "u-1" {
		t.Error("the review is held although nobody calls")
	}
}
