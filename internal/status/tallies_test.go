// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/status"
)

// A webhook that is in mode Shadow for some clusters shows there what it would have
// done, and nowhere else.
func TestShadowCounts(t *testing.T) {
	w := newWorld(t)
	w.load()
	const configuration, name = "image-policy", "images.policy.example.com"
	for _, r := range []dispatcher.Result{dispatcher.Allowed, dispatcher.Denied, dispatcher.Denied, dispatcher.Refused, dispatcher.Failed, dispatcher.FailedOpen, dispatcher.Skipped} {
		w.collector.ObserveShadow(t.Context(), shadowed(configuration, name, r))
	}
	dropped := shadowed(configuration, name, dispatcher.Allowed)
	dropped.Dropped = true
	w.collector.ObserveShadow(t.Context(), dropped)
	want := status.ShadowCounts{Allowed: 1, Denied: 2, Refused: 1, Failed: 1, FailedOpen: 1, Skipped: 1, Dropped: 1}
	shown := 0
	for _, hook := range w.load().Webhooks {
		switch {
		case hook.Mode != chain.Shadow.String():
			if hook.Shadow != nil {
				t.Errorf("%s, mode %s, has shadow counts", hook.ID, hook.Mode)
			}
		case hook.Name == name:
			shown++
			if diff := cmp.Diff(&want, hook.Shadow); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	}
	if shown == 0 {
		t.Errorf("the examples have %s in mode Shadow nowhere", name)
	}
}

func shadowed(configuration, name string, r dispatcher.Result) *dispatcher.ShadowRecord {
	return &dispatcher.ShadowRecord{Phase: chain.Validating, Outcome: &dispatcher.Outcome{
		Webhook: &chain.Entry{ID: hook.ID{Configuration: configuration, Name: name}}, Result: r,
	}}
}
