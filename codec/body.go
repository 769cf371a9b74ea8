// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"sync"
	"sync/atomic"
)

// Body is a reference-counted run of immutable bytes: a received
// AdmissionReview, or one encoded form of it. Whoever lets the bytes outlive
// its own frame retains the Body first and releases it when done; the last
// release hands the memory back to whoever made the Body.
//
// A Body is safe for concurrent use; its bytes must never be written. After the last
// release it is another's: nobody may touch it.
type Body struct {
	data    []byte
	refs    atomic.Int32
	free    func([]byte)
	account Account // who counts the bytes; nil: nobody
}

// Account counts the bytes of Bodies for as long as anybody holds them.
type Account interface {
	// Freed is called once for each Body, by whoever releases it last, with its length.
	Freed(bytes int)
}

// NewBody wraps data, which the Body owns from here on, with one reference.
// free, if not nil, is called once with data when the last reference is gone.
func NewBody(data []byte, free func([]byte)) *Body {
	b := bodies.Get().(*Body)
	b.data, b.free = data, free
	b.refs.Store(1)
	return b
}

var bodies = sync.Pool{New: func() any { return new(Body) }}

// Bytes returns the bytes. They are valid until the caller's own reference is
// released, and are read-only.
func (b *Body) Bytes() []byte { return b.data }

// Len returns the number of bytes.
func (b *Body) Len() int { return len(b.data) }

// Retain adds a reference and returns b.
func (b *Body) Retain() *Body {
	if b.refs.Add(1) <= 1 {
		panic("codec: Body retained after its last release")
	}
	return b
}

// Charge has the bytes counted by to until the last reference is gone; one that is
// charged already stays with who counts it. Only one goroutine may charge a Body,
// while it has a reference.
func (b *Body) Charge(to Account) {
	if b.account == nil {
		b.account = to
	}
}

// Charged reports whether the bytes are counted. It is for the goroutine that may
// charge the Body.
func (b *Body) Charged() bool { return b.account != nil }

// Release drops one reference. Releasing more often than retaining is a
// programming error that would hand memory out twice, so it panics.
func (b *Body) Release() {
	switch n := b.refs.Add(-1); {
	case n > 0:
	case n == 0:
		data, free, account := b.data, b.free, b.account
		b.data, b.free, b.account = nil, nil, nil
		bodies.Put(b)
		if account != nil {
			account.Freed(len(data))
		}
		if free != nil {
			free(data)
		}
	default:
		panic("codec: Body released more often than retained")
	}
}
