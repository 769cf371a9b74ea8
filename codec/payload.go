// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"slices"
	"sync"
)

// Payloads are the encoded forms of one Review, each made once and shared by all
// webhooks that want it. The zero value is ready for Reset. Payloads belong to
// one goroutine; the Bodies that it gives out do not.
type Payloads struct {
	review *Review
	forms  []form
}

// formKey tells the forms of a Review apart: everything that changes their bytes.
type formKey struct {
	version    Version
	generation int
}

type form struct {
	key  formKey
	body *Body
}

// NewPayloads returns the Payloads of r, which must outlive them.
func NewPayloads(r *Review) *Payloads { return &Payloads{review: r} }

// Reset releases what p holds and makes it the Payloads of r.
func (p *Payloads) Reset(r *Review) {
	p.Release()
	p.review = r
}

// Get returns the Review as version v has it, with object, of the given mutation
// generation, in place of the received one; nil is the received one. Where that
// is what was received, it is the received Body itself. p keeps its own reference
// until Release, or until a later generation is asked for: whoever needs the
// Body longer retains it.
func (p *Payloads) Get(v Version, generation int, object []byte) *Body {
	if v == p.review.Version && object == nil {
		return p.review.Body
	}
	key := formKey{v, generation}
	for i := range p.forms {
		if p.forms[i].key == key {
			return p.forms[i].body
		}
	}
	p.releaseBefore(generation)
	body := p.splice(v, object)
	p.forms = append(p.forms, form{key, body})
	return body
}

// splice encodes the Review in pooled memory.
func (p *Payloads) splice(v Version, object []byte) *Body {
	size := p.review.Body.Len() + len(object) + len(`v1beta1`)
	data := slices.Grow(payloadPool.get(), size)
	return NewBody(p.review.AppendReview(data, v, object), payloadPool.put)
}

// releaseBefore drops the forms of earlier generations: an object that was
// mutated since is not asked for again, and each form is as large as the review.
func (p *Payloads) releaseBefore(generation int) {
	p.forms = slices.DeleteFunc(p.forms, func(f form) bool {
		if f.key.generation >= generation {
			return false
		}
		f.body.Release()
		return true
	})
}

// Release drops all references of p. Calls under way keep their own.
func (p *Payloads) Release() {
	for _, f := range p.forms {
		f.body.Release()
	}
	clear(p.forms)
	p.forms, p.review = p.forms[:0], nil
}

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
