// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"errors"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// What keeps a webhook from being called at all is found before any call.
func TestPrepare(t *testing.T) {
	for name, c := range map[string]struct {
		webhook  registry.Webhook
		dryRun   bool
		deadline time.Duration
		want     webhook.Cause
		refusal  bool
	}{
		"C29 none of its versions is known":     {webhook: registry.Webhook{}, deadline: time.Minute, want: webhook.NotConvertible},
		"B17 dry run with side effects":         {webhook: registry.Webhook{Version: codec.V1, SideEffects: registry.SideEffectsSome}, dryRun: true, deadline: time.Minute, want: webhook.DryRun, refusal: true},
		"B17 dry run with unknown side effects": {webhook: registry.Webhook{Version: codec.V1, SideEffects: registry.SideEffectsUnknown}, dryRun: true, deadline: time.Minute, want: webhook.DryRun, refusal: true},
		"F23 no time left":                      {webhook: registry.Webhook{Version: codec.V1}, deadline: -time.Second, want: webhook.NoTimeLeft},
	} {
		t.Run(name, func(t *testing.T) {
			a := &admission{Request: Request{Review: &codec.Review{DryRun: c.dryRun}, Deadline: time.Now().Add(c.deadline)}}
			err := a.prepare(&invocation{webhook: &c.webhook})
			var refusal *Refusal
			var callErr *webhook.CallError
			switch {
			case c.refusal && errors.As(err, &refusal) && refusal.Cause == c.want:
			case !c.refusal && errors.As(err, &callErr) && callErr.Cause == c.want:
			default:
				t.Errorf("prepare: %T %v", err, err)
			}
		})
	}
}
