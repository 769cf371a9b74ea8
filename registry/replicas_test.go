// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// probesOf returns how often replicas probe a webhook that is down in a hundred
// looks, two seconds apart.
func probesOf(t *testing.T, replicas int) (probes int) {
	down := false
	for range replicas {
		r := &rotating{home: newHome(t)}
		r.Registry = registry.New(registry.Settings{
			Sources:  manifest.Directories(r.dir),
			Replicas: func() int { return replicas },
			Resource: answering(func(*transport.Target, *chain.DryRun) error {
				if down {
					probes++
					return absent{why: "nobody is there"}
				}
				return nil
			}),
		})
		down = false
		r.good(r.Registry)
		down = true
		r.serve("one", "a", 5)
		for range 100 {
			r.good(r.Registry)
			<-time.After(registry.DefaultInterval)
		}
		r.Close()
	}
	return probes
}

// Replicas together probe a webhook that is pending about as often as one alone, which
// does so at each look. However many they are, each does so once in a minute.
func TestReplicasShareProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alone, ten := probesOf(t, 1), probesOf(t, 10)
		t.Logf("one alone: %d, ten together: %d", alone, ten)
		if alone < 100 {
			t.Errorf("one alone probes %d times", alone)
		}
		if ten < alone/2 || ten > alone*14/10 {
			t.Errorf("ten together probe %d times, one alone %d times", ten, alone)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := &rotating{home: newHome(t)}
		probes := 0
		r.Registry = registry.New(registry.Settings{
			Sources:  manifest.Directories(r.dir),
			Replicas: func() int { return 1000 },
			Resource: answering(func(target *transport.Target, _ *chain.DryRun) error {
				if target.URL() == at("a") {
					probes++
					return absent{why: "nobody is there"}
				}
				return nil
			}),
		})
		defer r.Close()
		r.good(r.Registry)
		r.serve("one", "a", 5)
		for range 100 {
			r.good(r.Registry)
			<-time.After(registry.DefaultInterval)
		}
		if probes < 3 {
			t.Errorf("one of a thousand probes %d times in 200 s", probes)
		}
	})
}
