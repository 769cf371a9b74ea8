// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// Any Hook may be asked for the dry run of a probe (E15). Whatever it decides, it is there.
func TestDryRunOfAnyHook(t *testing.T) {
	for name, c := range map[string]struct {
		resp codec.Response
		err  error
		want string
	}{
		"allows":       {resp: codec.Response{Allowed: true}},
		"denies":       {resp: codec.Response{Code: 403}},
		"fails":        {err: errors.New("out of order"), want: "the dry-run review of a probe: out of order"},
		"denies badly": {err: &codec.AnswerError{Reason: "no uid", Denies: true}, want: "answered with an unclear denial"},
	} {
		t.Run(name, func(t *testing.T) {
			f := hook.Local(func(_ context.Context, q hook.Question) (codec.Response, error) {
				if !q.Review.DryRun || q.Cluster != "east" || !q.Mutating || string(q.Review.Resource.Resource) != "configmaps" {
					t.Errorf("it is asked about %+v", q.Review)
				}
				return c.resp, c.err
			})
			defer f.Close()
			err := answers(&chain.DryRun{Webhook: &chain.Entry{Hook: f}, Cluster: "east", Phase: chain.Mutating})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
