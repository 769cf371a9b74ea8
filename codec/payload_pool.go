// SPDX-License-Identifier: Apache-2.0

package codec

import "sync"

// maxPooledPayload is the size of the largest buffer that is pooled: it holds
// nearly every review, and a rare huge one is better left to the collector than
// kept for ever.
const maxPooledPayload = 256 << 10

// bufferPool is a pool of byte slices up to maxPooledPayload.
type bufferPool struct{ buffers sync.Pool }

var payloadPool bufferPool

// get returns an empty slice, of any capacity.
func (p *bufferPool) get() []byte {
	if b, ok := p.buffers.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return nil
}

func (p *bufferPool) put(b []byte) {
	if cap(b) <= maxPooledPayload {
		p.buffers.Put(&b)
	}
}

// newPayload returns a Body of memory from payloadPool.
func newPayload(data []byte) *Body { return NewBody(data, payloadPool.put) }
