// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
)

// batch is the invocations of one admission, and where their answers arrive. Calls
// may outlive the admission: whoever is last, it or a call, gives the memory back.
// What a call that lost a race still reads, such as the uid, must not be in it.
type batch struct {
	pool    *sync.Pool
	calls   *sync.WaitGroup // counts those under way
	list    []invocation    // does not grow while a call is under way, which points into it
	answers chan *invocation
	timer   *time.Timer // of who waits for answers; stopped
	users   atomic.Int32
	over    atomic.Bool // the admission needs no answers any more
}

// maxPooledBatch is how many invocations a batch that is kept has room for.
const maxPooledBatch = 64

// newBatch returns a batch without invocations, of which one user is the caller.
func (d *Dispatcher) newBatch() *batch {
	b, ok := d.batches.Get().(*batch)
	if !ok {
		b = &batch{pool: &d.batches, calls: &d.calls, answers: make(chan *invocation, 1)}
	}
	b.users.Store(1)
	b.over.Store(false)
	return b
}

// makeRoom has room for the answers of all invocations at once.
func (b *batch) makeRoom() {
	if cap(b.answers) < len(b.list) {
		b.answers = make(chan *invocation, cap(b.list))
	}
}

// add returns the next invocation, valid until the next add.
func (b *batch) add(w *chain.Entry, position, round int) *invocation {
	b.list = append(b.list, invocation{webhook: w, position: position, round: round, batch: b})
	return &b.list[len(b.list)-1]
}

// drop takes back what add returned last.
func (b *batch) drop() {
	last := len(b.list) - 1
	b.list[last] = invocation{}
	b.list = b.list[:last]
}

// close ends the admission's use of b: no call starts any more.
func (b *batch) close() {
	b.over.Store(true)
	b.release()
}

// release ends the use of one user.
func (b *batch) release() {
	if b.users.Add(-1) > 0 {
		return
	}
	for len(b.answers) > 0 { // that came too late
		<-b.answers
	}
	clear(b.list)
	b.list = b.list[:0]
	if cap(b.list) <= maxPooledBatch {
		b.pool.Put(b)
	}
}

// alarm returns the timer, set to d.
func (b *batch) alarm(d time.Duration) *time.Timer {
	if b.timer == nil {
		b.timer = time.NewTimer(d)
	} else {
		b.timer.Reset(d)
	}
	return b.timer
}
