// SPDX-License-Identifier: Apache-2.0

package codec

import "slices"

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
