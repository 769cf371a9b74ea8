// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// fill has b know all that there may be of so many invocations.
func fill(b *batch, n int) {
	for range n {
		inv := b.add(&chain.Entry{}, 3, 1)
		inv.undecided, inv.waiting, inv.begin = true, true, time.Now()
		inv.resp, inv.err, inv.elapsed = codec.Response{Allowed: true}, errors.New("no"), 1
	}
}

// Nothing of one admission is left in the memory that another gets: neither of an
// invocation that was taken back, nor of one that has ended.
func TestBatchKeepsNothing(t *testing.T) {
	d := &Dispatcher{}
	b := d.newBatch()
	fill(b, 3)
	b.drop()
	if len(b.list) != 2 {
		t.Errorf("%d invocations are left", len(b.list))
	}
	if dropped := b.list[:3][2]; !reflect.ValueOf(dropped.inquiry).IsZero() {
		t.Errorf("what was taken back has %+v", dropped.inquiry)
	}
	b.close()
	if len(b.list) != 0 || !b.over.Load() {
		t.Errorf("at the end there are %d invocations, over is %v", len(b.list), b.over.Load())
	}
	for _, inv := range b.list[:2] {
		if !reflect.ValueOf(inv.inquiry).IsZero() {
			t.Errorf("what has ended has %+v", inv.inquiry)
		}
	}
}

// The memory of an admission is used again, but for that of an unusually large one. A
// pool may forget what it has, so it is tried several times.
func TestMemoryIsUsedAgain(t *testing.T) {
	for invocations, want := range map[int]bool{0: true, maxPooledBatch: true, maxPooledBatch + 1: false} {
		again := false
		for range 100 {
			d := &Dispatcher{}
			b := d.newBatch()
			fill(b, invocations)
			b.close()
			next := d.newBatch()
			again = again || next == b
			if next.over.Load() || next.users.Load() != 1 {
				t.Fatalf("a new batch is over: %v, and has %d users", next.over.Load(), next.users.Load())
			}
		}
		if again != want {
			t.Errorf("the batch of %d is used again: %v", invocations, again)
		}
	}
	answered := false
	for range 100 {
		d := &Dispatcher{}
		b := d.newBatch()
		var to hook.Receiver
		d.start(t.Context(), b.add(&chain.Entry{Hook: asking(func(_ hook.Question, r hook.Receiver) { to = r })}, 0, 0), hook.Question{})
		b.close()
		if d.newBatch() == b {
			t.Fatal("the memory of a call that is under way is another's")
		}
		to.Receive(codec.Response{}, nil)
		answered = answered || d.newBatch() == b
	}
	if !answered {
		t.Error("the batch of a call that has ended late is not used again")
	}
	d, _, _ := watched(t)
	again := false
	for range 100 {
		a := d.newAdmission(t.Context(), request())
		a.release()
		again = again || d.newAdmission(t.Context(), request()) == a
	}
	if !again {
		t.Error("the memory of no admission is used again")
	}
}

// The timer of a batch rings when it was last set to, for one admission after the other.
func TestAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := (&Dispatcher{}).newBatch()
		for _, d := range []time.Duration{time.Second, time.Minute, time.Millisecond} {
			begin := time.Now()
			timer := b.alarm(d)
			<-timer.C
			if took := time.Since(begin); took != d {
				t.Errorf("set to %v it rings after %v", d, took)
			}
			b.alarm(time.Hour) // of an admission that ends before
		}
		b.timer.Stop()
	})
}
