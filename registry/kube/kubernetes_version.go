// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
)

const (
	// versionInterval is the time between two looks at a cluster's version, and
	// versionRetry that after one that failed.
	versionInterval = 10 * time.Minute
	versionRetry    = time.Minute
	versionTimeout  = 10 * time.Second
	// keptVersions is how many of the last versions count: an hour's.
	keptVersions = 6
)

// version is the version of a cluster. While a control plane is upgraded, or taken
// back, its servers differ, and one of them answers: the lowest of the last hour
// counts, because that is the one that sends what the others do not.
type version struct {
	mu   sync.Mutex
	last []chain.KubernetesVersion // newest last
}

// lowest returns the version that counts; zero: it is not known.
func (v *version) lowest() chain.KubernetesVersion {
	v.mu.Lock()
	defer v.mu.Unlock()
	var lowest chain.KubernetesVersion
	for i, seen := range v.last {
		if i == 0 || seen.Before(lowest) {
			lowest = seen
		}
	}
	return lowest
}

func (v *version) saw(seen chain.KubernetesVersion) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = append(v.last, seen)
	v.last = v.last[max(0, len(v.last)-keptVersions):]
}

// follow reads the version again and again until ctx is done. What is known stays
// known while it cannot be read.
func (v *version) follow(ctx context.Context, read func(context.Context) (chain.KubernetesVersion, error)) {
	for {
		wait := versionRetry
		attempt, cancel := context.WithTimeout(ctx, versionTimeout)
		seen, err := read(attempt)
		cancel()
		if err == nil {
			v.saw(seen)
			wait = versionInterval
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}
