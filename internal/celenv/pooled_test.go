// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/admission-dispatcher/dispatcher/codec/json"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pooled"
)

// A pooled scanner has nothing of the object that it read last.
func TestPooledIsEmpty(t *testing.T) {
	s := new(json.Scanner[[]byte])
	pooled.Check(t, s, func() { putBack(s) }, "closers[]") // room that the next object overwrites
	w := new(workspace)
	w.elements = []ref.Val{types.True}
	pooled.Check(t, w, w.putBack, "scanner.closers[]")
}

// What has been converted, in whole or in part, is not in the room that the next object
// overwrites.
func TestWorkspacesForget(t *testing.T) {
	for _, text := range []string{`{"a":[1,{"b":"c"}],"d":{"e":[[]]}}`, `{"a":[1,{"b":"c","d":1e999}]}`} {
		c := converter{piece: usualPiece}
		_, err := c.value([]byte(text))
		t.Log(err)
		for _, m := range c.members[:cap(c.members)] {
			if m != (member{}) {
				t.Errorf("of %s there is still %v", text, m)
			}
		}
		for _, v := range c.elements[:cap(c.elements)] {
			if v != nil {
				t.Errorf("of %s there is still %v", text, v)
			}
		}
	}
}
