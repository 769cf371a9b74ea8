// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"

	"github.com/admission-dispatcher/dispatcher/conformance/random"
	"github.com/admission-dispatcher/dispatcher/conformance/world"
)

// shrink returns the smallest Case that it finds in which the same aspect differs
// without being meant to. It is greedy: what can be left out is left out.
func shrink(ctx context.Context, w *world.World, f failure) (failure, error) {
	for {
		next, err := smaller(ctx, w, f)
		if err != nil || next == nil {
			return f, err
		}
		f = *next
	}
}

// smaller returns the first of the Cases that lack something which still fails.
func smaller(ctx context.Context, w *world.World, f failure) (next *failure, err error) {
	candidates := f.Smaller()
	if len(candidates) == 0 {
		return nil, nil
	}
	clusters, err := w.Start(ctx, candidates)
	if err != nil {
		return nil, err
	}
	defer func() {
		if stopErr := clusters.Stop(); err == nil {
			err = stopErr
		}
	}()
	for i := range candidates {
		if next, err := again(ctx, clusters, i, candidates[i], f.aspect()); next != nil || err != nil {
			return next, err
		}
	}
	return nil, nil
}

// again plays a Case, and returns its failure if it has one of that aspect.
func again(ctx context.Context, clusters *world.Clusters, index int, c random.Case, aspect string) (*failure, error) {
	played, err := clusters.Play(ctx, index)
	if err != nil {
		return nil, err
	}
	for i := range played {
		if f, ok := failureOf(c, &played[i]); ok && f.aspect() == aspect {
			return &f, nil
		}
	}
	return nil, nil
}
