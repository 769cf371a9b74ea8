// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher/overload"
	"github.com/admission-dispatcher/dispatcher/hook"
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
		"B17 dry run with side effects":         {webhook: chain.Entry{SideEffects: chain.SideEffectsSome}, dryRun: true, deadline: time.Minute, want: hook.DryRun, refusal: true},
		"B17 dry run with unknown side effects": {webhook: chain.Entry{SideEffects: chain.SideEffectsUnknown}, dryRun: true, deadline: time.Minute, want: hook.DryRun, refusal: true},
		"F23 no time left":                      {webhook: chain.Entry{}, deadline: -time.Second, want: hook.NoTimeLeft},
		"F23 a moment too little":               {webhook: chain.Entry{Mode: chain.Shadow}, deadline: 5*time.Millisecond - 1, want: hook.NoTimeLeft},
		"F23 just enough":                       {webhook: chain.Entry{Mode: chain.Shadow}, deadline: 5 * time.Millisecond},
		"B17 a dry run without side effects":    {webhook: chain.Entry{Mode: chain.Shadow, SideEffects: chain.SideEffectsNoneOnDryRun}, dryRun: true, deadline: time.Minute},
		"side effects, and no dry run":          {webhook: chain.Entry{Mode: chain.Shadow, SideEffects: chain.SideEffectsSome}, deadline: time.Minute},
		"F23 no time left, with side effects":   {webhook: chain.Entry{SideEffects: chain.SideEffectsSome}, deadline: -time.Second, want: hook.NoTimeLeft},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // where no time passes
				a := &admission{Request: Request{Review: &codec.Review{DryRun: c.dryRun}, Deadline: time.Now().Add(c.deadline)}}
				err := a.prepare(&c.webhook)
				var refusal *hook.Refusal
				var callErr *hook.CallError
				switch {
				case c.want == "" && err == nil:
				case c.refusal && errors.As(err, &refusal) && refusal.Cause == c.want:
				case !c.refusal && errors.As(err, &callErr) && callErr.Cause == c.want:
				default:
					t.Errorf("prepare: %T %v", err, err)
				}
			})
		})
	}
}

// An admission asks for its slot once: it has one for all its calls, or waits in vain only
// for the first.
func TestAdmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		capacity := overload.New(overload.Limits{Admissions: 2})
		admission := func(cluster string) *admission {
			return &admission{
				Request:    Request{Cluster: &chain.Cluster{Name: cluster}, Review: &codec.Review{Body: codec.NewBody(nil, nil)}, Deadline: time.Now().Add(time.Minute)},
				dispatcher: &Dispatcher{capacity: capacity},
			}
		}
		first, second, third := admission("east"), admission("west"), admission("north")
		for range 2 {
			if first.admit() != nil || second.admit() != nil {
				t.Error("there is no slot")
			}
		}
		begin := time.Now()
		for range 2 {
			var call *hook.CallError
			if err := third.admit(); !errors.As(err, &call) || call.Cause != hook.Shed || call.Err == nil {
				t.Errorf("without a slot: %v", err)
			}
		}
		if waited := time.Since(begin); waited != 10*time.Millisecond {
			t.Errorf("waited %v", waited)
		}
		if taken := capacity.Usage().Admissions; taken["east"] != 1 || taken["west"] != 1 || len(taken) != 2 {
			t.Errorf("taken are %v", taken)
		}
		first.slot.Release()
		if third.admit() == nil {
			t.Error("who was shed has a slot later")
		}
	})
}
