// SPDX-License-Identifier: Apache-2.0

package pooled

import (
	"slices"
	"strings"
	"sync"
	"testing"
)

//nolint:unused // its fields are looked at by reflection
type part struct {
	text string
	tell func()
}

//nolint:unused // likewise
type value struct {
	part
	mu    sync.Mutex
	parts []part
	next  *value
	done  chan int
	err   error
	any   strings.Builder
	span  interface{ end() }
	len   interface{ Len() int }
}

// Whatever a release forgets is found, also what a slice only has room for.
func TestWhatIsForgottenIsFound(t *testing.T) {
	v := &value{}
	if empty := fill(v, nil); !slices.Equal(empty, []string{"span"}) {
		t.Fatalf("%q is not filled", empty)
	}
	if got := residue(v, []string{"any"}); !slices.Equal(got, []string{"done", "err", "len", "next", "part.tell", "part.text", "parts", "parts[].tell", "parts[].text"}) {
		t.Errorf("found is %q", got)
	}
	*v = value{parts: v.parts[:0]}
	if got := residue(v, []string{"parts[].tell"}); !slices.Equal(got, []string{"parts[].text"}) {
		t.Errorf("in the room of a slice is %q", got)
	}
	Check(t, v, func() { *v = value{span: v.span} }, "span")
}
