// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"errors"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
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
		"F23 no time left, with side effects":   {webhook: chain.Entry{SideEffects: chain.SideEffectsSome}, deadline: -time.Second, want: hook.NoTimeLeft},
	} {
		t.Run(name, func(t *testing.T) {
			a := &admission{Request: Request{Review: &codec.Review{DryRun: c.dryRun}, Deadline: time.Now().Add(c.deadline)}}
			err := a.prepare(&c.webhook)
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
