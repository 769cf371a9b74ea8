// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"slices"

	"github.com/admission-dispatcher/dispatcher/chain"
)

// validate asks all matching Hooks of a stage at once, and those of the next one only if
// everything before allowed. What is denied before any call is sent to nobody.
func (a *admission) validate() {
	var buf [16]int
	candidates := a.candidates(buf[:0])
	if len(candidates) == 0 {
		return
	}
	a.batch = a.dispatcher.newBatch()
	defer a.batch.close()
	for _, i := range candidates {
		a.consider(i, 0)
	}
	a.batch.makeRoom()
	a.outcomes = slices.Grow(a.outcomes, len(a.batch.list))
	for rest := a.batch.list; len(rest) > 0 && !a.denied(); {
		stage := stageOf(rest)
		rest = rest[len(stage):]
		if stage[0].webhook.Stage != chain.StagePolicy {
			a.subject.Variables().Forget() // nobody evaluates any more
		}
		a.fanOut(stage, len(rest))
	}
}

// stageOf returns the first of a list that are of one stage.
func stageOf(list []*invocation) []*invocation {
	n := 1
	for n < len(list) && list[n].webhook.Stage == list[0].webhook.Stage {
		n++
	}
	return list[:n]
}

// fanOut asks all webhooks of a stage at once, before following others are asked,
// and settles every answer that arrives in time. The first denial starts the
// grace, after which nobody is waited for.
func (a *admission) fanOut(stage []*invocation, following int) {
	for _, inv := range stage {
		a.ask(inv, following)
	}
	a.join()
}
