// SPDX-License-Identifier: Apache-2.0

package codec

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
