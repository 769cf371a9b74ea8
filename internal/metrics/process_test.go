// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/registry"
)

// A Hook that is a function of this process is listed, with no place where it is served.
func TestHookWithoutTarget(t *testing.T) {
	own := &chain.Entry{ID: hook.ID{Configuration: "policies", Name: "own"}, Hook: hook.Local(nil)}
	s := &registry.Snapshot{}
	s.Clusters = map[string]*chain.Cluster{"east": {Name: "east", Validating: &chain.Chain{Webhooks: []*chain.Entry{own}}, Mutating: &chain.Chain{}}}
	got := webhooksOf(s, chain.Validating)
	if want := (servedWebhook{"policies", "own", ""}); len(got) != 1 || !got[want] {
		t.Errorf("%v", got)
	}
}
