// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// TestConcurrentUse has many goroutines compile the same few expressions and
// evaluate what they share, of variables that they share.
func TestConcurrentUse(t *testing.T) {
	c, v := NewCompiler(), variablesOf(decode(t, update))
	const goroutines, expressions = 8, 4
	var got [goroutines][expressions]*Condition
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for e := range expressions {
				condition, err := c.Compile(fmt.Sprintf(`object.spec.replicas > %d && cluster.name == 'east' && request.name == 'web'`, e))
				if err != nil {
					t.Error(err)
					return
				}
				got[g][e] = condition
				if holds, _, err := condition.Evaluate(v, Budget, time.Time{}); err != nil || holds != (e < 3) {
					t.Errorf("expression %d: got %v, %v", e, holds, err)
				}
				v.Forget()
				if _, err := c.Compile(`nonsense`); err == nil {
					t.Error("nonsense compiles")
				}
			}
		})
	}
	wg.Wait()
	for g := range goroutines {
		if got[g] != got[0] {
			t.Error("an expression was compiled twice")
		}
	}
}
