// SPDX-License-Identifier: Apache-2.0

package server

import "testing"

// A body that does not come costs no buffer while it is waited for, and gives each one
// back once: two requests must never share one.
func TestAwaitedBodyHasOneBuffer(t *testing.T) {
	b := newBuffers()
	in := intake{buffers: b, data: b.get()}
	if r := in.await(&conn{handed: true}, true); r != cutShort { // the connection is at its end
		t.Errorf("%v", r)
	}
	if len(b.free) != 1 || in.data != nil {
		t.Errorf("%d buffers are free, %d bytes are kept", len(b.free), cap(in.data))
	}
	in.drop()
	if len(b.free) != 1 {
		t.Errorf("%d buffers are free", len(b.free))
	}
}

// What a body has is given back once, whoever has it in the end.
func TestBodyIsGivenBackOnce(t *testing.T) {
	m := newMemory(1 << 20)
	intakeOf := func() *intake {
		in := &intake{buffers: m.buffers, holder: m.of("east"), data: m.buffers.get(), until: later()}
		if in.taken = in.holder.take(cap(in.data), in.until); !in.taken {
			t.Fatal("no memory")
		}
		return in
	}
	in := intakeOf()
	in.drop()
	in.drop()
	if m.used != 0 || len(m.buffers.free) != 1 {
		t.Errorf("dropped: %d bytes are in use, %d buffers are free", m.used, len(m.buffers.free))
	}
	in = intakeOf()
	body := in.body()
	in.drop()
	if m.used != leastBytes {
		t.Errorf("handed over: %d bytes are in use", m.used)
	}
	body.Release()
	if m.used != 0 || len(m.buffers.free) != 1 {
		t.Errorf("released: %d bytes are in use, %d buffers are free", m.used, len(m.buffers.free))
	}
}
