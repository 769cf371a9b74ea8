// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"fmt"
	"testing"

	"github.com/admission-dispatcher/dispatcher/chain"
)

// The classes of side effects say who may be called in a dry run, and who twice.
func TestSideEffects(t *testing.T) {
	for class, want := range map[chain.SideEffects]string{
		chain.SideEffectsNone: "true true true", chain.SideEffectsNoneOnDryRun: "true false true",
		chain.SideEffectsSome: "false false false", chain.SideEffectsUnknown: "false false false",
	} {
		if got := fmt.Sprint(class.SupportsDryRun(), class.Repeatable(false), class.Repeatable(true)); got != want {
			t.Errorf("%v: %s, want %s", class, got, want)
		}
	}
}
