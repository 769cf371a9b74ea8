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
	review     *Review
	transcoder Transcoder
	uid        []byte // in place of the received one; nil: as received
	forms      []payload
	native     nativeObjects
}

// payload is one encoded form.
type payload struct {
	form       Form
	generation int
	body       *Body
}

// NewPayloads returns the Payloads of r, which must outlive them. Without a
// Transcoder ProtobufNative is Protobuf.
func NewPayloads(r *Review, t Transcoder) *Payloads {
	return &Payloads{review: r, transcoder: t}
}

// Reset releases what p holds and makes it the Payloads of r.
func (p *Payloads) Reset(r *Review, t Transcoder) {
	p.Release()
	p.review, p.transcoder = r, t
}

// Get returns the Review in the form f, with object, of the given mutation
// generation, in place of the received one; nil is the received one. Where that
// is what was received, it is the received Body itself; where ProtobufNative
// would lose something, it is the Body of Protobuf. p keeps its own reference
// until Release, or until a later generation is asked for: whoever needs the
// Body longer retains it.
func (p *Payloads) Get(f Form, generation int, object []byte) *Body {
	if body := p.Find(f, generation, object); body != nil {
		return body
	}
	p.releaseBefore(generation)
	body := p.encode(f, generation, object)
	p.forms = append(p.forms, payload{f, generation, body})
	return body
}

// Find is Get of what is there already; nil if it would have to be made.
func (p *Payloads) Find(f Form, generation int, object []byte) *Body {
	if f == p.review.form() && object == nil && p.uid == nil {
		return p.review.Body
	}
	for i := range p.forms {
		if p.forms[i].form == f && p.forms[i].generation == generation {
			return p.forms[i].body
		}
	}
	return nil
}

// Renew has the forms made from now on carry uid in place of the received one. It
// must never be written again.
func (p *Payloads) Renew(uid []byte) {
	p.releaseForms()
	p.uid = uid
}

// encode makes the form f, sharing what is the same in other forms.
func (p *Payloads) encode(f Form, generation int, object []byte) *Body {
	if f.Encoding == ProtobufNative && !p.native.make(p, generation, object) {
		f.Encoding = Protobuf
		return p.Get(f, generation, object).Retain()
	}
	if f.Coding != Identity {
		plain := p.Get(Form{f.Version, f.Encoding, Identity}, generation, object)
		return newPayload(AppendCompressed(payloadPool.get(), f.Coding, plain.Bytes()))
	}
	switch memory := payloadPool.get(); f.Encoding {
	case ProtobufNative:
		return newPayload(p.review.appendProtobuf(memory, f.Version, &p.native.cargo))
	case Protobuf:
		c := p.review.cargo(object, p.uid)
		return newPayload(p.review.appendProtobuf(memory, f.Version, &c))
	default:
		return newPayload(p.review.appendReview(memory, f.Version, object, p.uid))
	}
}

// releaseBefore drops the forms of earlier generations: an object that was
// mutated since is not asked for again, and each form is as large as the review.
func (p *Payloads) releaseBefore(generation int) {
	p.forms = slices.DeleteFunc(p.forms, func(f payload) bool {
		if f.generation >= generation {
			return false
		}
		f.body.Release()
		return true
	})
}

// Release drops all references of p. Calls under way keep their own.
func (p *Payloads) Release() {
	p.releaseForms()
	p.review, p.transcoder, p.uid = nil, nil, nil
}

func (p *Payloads) releaseForms() {
	for _, f := range p.forms {
		f.body.Release()
	}
	clear(p.forms)
	p.forms = p.forms[:0]
	p.native.release()
}

// Transcoder turns the JSON of objects into Kubernetes' native protobuf.
type Transcoder interface {
	// AppendNative appends object, which is JSON of that apiVersion and kind, as
	// native protobuf with its envelope to dst. ok is false where that would lose
	// something or the kind is unknown; out is then of no use but as memory.
	AppendNative(dst, apiVersion, kind, object []byte) (out []byte, ok bool)
}

// nativeObjects are the objects of a Review, of one generation, as native
// protobuf. They are made once for all versions.
type nativeObjects struct {
	cargo
	memory     []byte // of the cargo, pooled
	generation int
	made, ok   bool
}

// make makes the native objects, unless they are. It fails where one of them
// cannot be native, or there is none.
func (n *nativeObjects) make(p *Payloads, generation int, object []byte) bool {
	if p.transcoder == nil {
		return false
	}
	if n.made && n.generation == generation {
		return n.ok
	}
	if n.memory == nil {
		n.memory = payloadPool.get()
	}
	n.made, n.generation = true, generation
	n.cargo = p.review.cargo(object, p.uid)
	n.ok = n.transcode(p.transcoder, p.review)
	return n.ok
}

func (n *nativeObjects) transcode(t Transcoder, r *Review) (ok bool) {
	if n.object == nil && n.oldObject == nil {
		return false
	}
	if n.memory, ok = appendNative(n.memory[:0], t, &r.Object, n.object); !ok {
		return false
	}
	split := len(n.memory)
	if n.memory, ok = appendNative(n.memory, t, &r.OldObject, n.oldObject); !ok {
		return false
	}
	if n.object != nil {
		n.object = n.memory[:split]
	}
	if n.oldObject != nil {
		n.oldObject = n.memory[split:]
	}
	return true
}

// appendNative appends raw, of the kind of o, which no mutation changes.
func appendNative(dst []byte, t Transcoder, o *Object, raw []byte) (out []byte, ok bool) {
	if raw == nil {
		return dst, true
	}
	return t.AppendNative(dst, o.APIVersion, o.Kind, raw)
}

func (n *nativeObjects) release() {
	if n.memory != nil {
		payloadPool.put(n.memory)
	}
	*n = nativeObjects{}
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

// newPayload returns a Body of memory from payloadPool.
func newPayload(data []byte) *Body { return NewBody(data, payloadPool.put) }

// Deferred is a Review in a form that is perhaps never sent: it is written when
// somebody asks, from the bytes that the Review was read from. As a Body it
// outlives the Review. The zero value is none. It is safe for concurrent use.
type Deferred struct {
	form   Form
	source *Body
	is     Form   // of source
	object []byte // in place of source's; nil: as it is
	uid    []byte // likewise
}

// Later is Get for a form that is perhaps never sent. It holds no reference of
// its own; object must never be written again.
func (p *Payloads) Later(f Form, generation int, object []byte) Deferred {
	if f.Encoding == ProtobufNative { // made already, as what its compressed form is made from
		return Deferred{form: f, source: p.Get(f, generation, object), is: f}
	}
	return Deferred{form: f, source: p.review.Body, is: p.review.form(), object: object, uid: p.uid}
}

// IsZero reports whether d is none.
func (d *Deferred) IsZero() bool { return d.source == nil }

// Form returns the form of Body.
func (d *Deferred) Form() Form { return d.form }

// Retain adds a reference to what d is written from.
func (d *Deferred) Retain() {
	if d.source != nil {
		d.source.Retain()
	}
}

// Release takes back Retain.
func (d *Deferred) Release() {
	if d.source != nil {
		d.source.Release()
	}
}

// Body returns the Review in its form. The reference is the caller's, who holds one
// to d during the call. It is written anew each time, unless it is what was received.
// It fails if what was received cannot be read again.
func (d *Deferred) Body() (*Body, error) {
	if d.is == d.form && d.object == nil && d.uid == nil {
		return d.source.Retain(), nil
	}
	r := AcquireReview()
	defer ReleaseReview(r)
	decode := r.Decode
	if d.is.Encoding == Protobuf {
		decode = r.DecodeProtobuf
	}
	if err := decode(d.source); err != nil {
		return nil, err
	}
	var p Payloads
	p.Reset(r, nil)
	p.Renew(d.uid)
	defer p.Release()
	return p.Get(d.form, 0, d.object).Retain(), nil
}
