// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"errors"
	"sync"
)

// memo is what Hooks have made of a review, each thing once for all of them.
type memo struct {
	mu     sync.Mutex // guards values, and is not held while one is made
	values map[any]*made
}

// made is one thing that was made, or why it could not be.
type made struct {
	once  sync.Once
	value any
	err   error
}

// errNotMade is the error of what a function has left unmade that panicked.
var errNotMade = errors.New("what makes it has panicked")

func (m *memo) get(key any, create func() (any, error)) (any, error) {
	m.mu.Lock()
	found := m.values[key]
	if found == nil {
		found = &made{err: errNotMade}
		if m.values == nil {
			m.values = map[any]*made{}
		}
		m.values[key] = found
	}
	m.mu.Unlock()
	found.once.Do(func() { found.value, found.err = create() })
	return found.value, found.err
}

// Once returns what create returned for key when the first Hook asked for it about this
// generation of the review. Others wait for that one. Nobody writes to the value, which
// must not refer to the memory of the review.
func (v *View) Once(key any, create func() (any, error)) (any, error) {
	return v.memo(&v.now).get(key, create)
}

// OnceForAll is Once for what does not depend on the object, which mutations change: it is
// made once for all generations.
func (v *View) OnceForAll(key any, create func() (any, error)) (any, error) {
	return v.memo(&v.always).get(key, create)
}

// memo returns the memo at one of the fields of v.
func (v *View) memo(at **memo) *memo {
	v.mu.Lock()
	defer v.mu.Unlock()
	if *at == nil {
		*at = new(memo)
	}
	return *at
}

// memos returns what there is; nil: nobody has made anything yet.
func (v *View) memos() (now, always *memo) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now, v.always
}
