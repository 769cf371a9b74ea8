// SPDX-License-Identifier: Apache-2.0

package codec

import "sync/atomic"

// Body is a reference-counted run of immutable bytes: a received
// AdmissionReview, or one encoded form of it. Whoever lets the bytes outlive
// its own frame retains the Body first and releases it when done; the last
// release hands the memory back to whoever made the Body.
//
// A Body is safe for concurrent use; its bytes must never be written.
type Body struct {
	data []byte
	refs atomic.Int32
	free func([]byte)
}

// NewBody wraps data, which the Body owns from here on, with one reference.
// free, if not nil, is called once with data when the last reference is gone.
func NewBody(data []byte, free func([]byte)) *Body {
	b := &Body{data: data, free: free}
	b.refs.Store(1)
	return b
}

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

// Release drops one reference. Releasing more often than retaining is a
// programming error that would hand memory out twice, so it panics.
func (b *Body) Release() {
	switch n := b.refs.Add(-1); {
	case n > 0:
	case n == 0:
		data := b.data
		b.data = nil
		if b.free != nil {
			b.free(data)
		}
	default:
		panic("codec: Body released more often than retained")
	}
}
