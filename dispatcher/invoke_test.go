// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// What keeps a webhook from being called at all is found before any call.
func TestPrepare(t *testing.T) {
	for name, c := range map[string]struct {
		webhook  chain.Entry
		dryRun   bool
		deadline time.Duration
		want     hook.Cause
		refusal  bool
	}{
		"C29 none of its versions is known":     {webhook: chain.Entry{}, deadline: time.Minute, want: hook.NotConvertible},
		"B17 dry run with side effects":         {webhook: chain.Entry{Version: codec.V1, SideEffects: chain.SideEffectsSome}, dryRun: true, deadline: time.Minute, want: hook.DryRun, refusal: true},
		"B17 dry run with unknown side effects": {webhook: chain.Entry{Version: codec.V1, SideEffects: chain.SideEffectsUnknown}, dryRun: true, deadline: time.Minute, want: hook.DryRun, refusal: true},
		"F23 no time left":                      {webhook: chain.Entry{Version: codec.V1}, deadline: -time.Second, want: hook.NoTimeLeft},
	} {
		t.Run(name, func(t *testing.T) {
			a := &admission{Request: Request{Review: &codec.Review{DryRun: c.dryRun}, Deadline: time.Now().Add(c.deadline)}}
			err := a.prepare(&invocation{webhook: &c.webhook})
			var refusal *hook.Refusal
			var callErr *hook.CallError
			switch {
			case c.refusal && errors.As(err, &refusal) && refusal.Cause == c.want:
			case !c.refusal && errors.As(err, &callErr) && callErr.Cause == c.want:
			default:
				t.Errorf("prepare: %T %v", err, err)
			}
		})
	}
}

// What a webhook is sent that does not read what it offers is the review as it is by
// then, and is written only when it is sent.
func TestPlainOfAMutatedReview(t *testing.T) {
	received := codec.NewBody([]byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":{"group":"","version":"v1","kind":"Pod"},`+
		`"resource":{"group":"","version":"v1","resource":"pods"},"name":"p","namespace":"shop","operation":"CREATE","userInfo":{"username":"ann"},"object":{"metadata":{"name":"p"}}}}`), nil)
	review := codec.AcquireReview()
	if err := review.Decode(received); err != nil {
		t.Fatal(err)
	}
	a := &admission{Request: Request{Review: review}, generation: 1, object: []byte(`{"mutated":true}`)}
	a.payloads.Reset(review, nil)
	pinned := &chain.Entry{Wire: webhook.Wire{Encoding: webhook.Protobuf}}
	form := codec.Form{Version: codec.V1, Encoding: codec.Protobuf}
	if later := a.plain(pinned, form); !later.IsZero() {
		t.Error("there is something to send in place of a form that is pinned")
	}
	later := a.plain(&chain.Entry{}, form)
	later.Retain()
	a.payloads.Release()
	codec.ReleaseReview(review)
	body, err := later.Body()
	if err != nil || !strings.Contains(string(body.Bytes()), `"object":{"mutated":true}`) {
		t.Errorf("%q, %v", body.Bytes(), err)
	}
}
