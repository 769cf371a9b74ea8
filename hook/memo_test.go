// SPDX-License-Identifier: Apache-2.0

package hook_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/admission-dispatcher/dispatcher/hook"
)

// counted makes its own number, and counts how often it is asked to.
type counted struct {
	mu sync.Mutex
	n  int
}

func (c *counted) create() (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n, nil
}

type memoKey struct{ name string }

// Of many Hooks that ask at once one makes what all of them get.
func TestOnce(t *testing.T) {
	v := view("east")
	defer v.Release()
	var (
		made counted
		all  sync.WaitGroup
	)
	for range 20 {
		all.Go(func() {
			if got, err := v.Once(memoKey{"a"}, made.create); got != 1 || err != nil {
				t.Errorf("it is %v, %v", got, err)
			}
		})
	}
	all.Wait()
	if got, _ := v.Once(memoKey{"b"}, made.create); got != 2 {
		t.Errorf("another key has %v", got)
	}
}

// A mutation makes anew what depends on the object, and keeps the rest; a View that
// somebody has keeps what it has.
func TestOnceOfGenerations(t *testing.T) {
	for _, held := range []bool{true, false} {
		var now, always counted
		check := func(v *hook.View, wantNow, wantAlways int) {
			t.Helper()
			a, _ := v.Once(memoKey{"a"}, now.create)
			b, _ := v.OnceForAll(memoKey{"a"}, always.create)
			if a != wantNow || b != wantAlways {
				t.Errorf("held %v: it has %v and %v, want %d and %d", held, a, b, wantNow, wantAlways)
			}
		}
		v := podView(t, nil)
		check(v, 1, 1)
		first := v
		if held {
			first.Retain()
		}
		v = v.Mutated(object(1))
		check(v, 2, 1)
		v = v.Renewed([]byte("u-2"))
		check(v, 2, 1)
		if held {
			check(first, 1, 1)
			first.Release()
		}
		v.Release()
	}
}

// What was not made for a panic is an error to all who ask later, never an empty value.
func TestOncePanics(t *testing.T) {
	v := view("east")
	defer v.Release()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is swallowed")
			}
		}()
		_, _ = v.Once(memoKey{"a"}, func() (any, error) { panic("no") })
	}()
	if got, err := v.Once(memoKey{"a"}, func() (any, error) { return 1, nil }); err == nil {
		t.Errorf("it is %v", got)
	}
	want := errors.New("not today")
	for range 2 {
		if _, err := v.Once(memoKey{"b"}, func() (any, error) { return nil, want }); !errors.Is(err, want) {
			t.Errorf("%v", err)
		}
	}
}
