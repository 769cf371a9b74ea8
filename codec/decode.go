// SPDX-License-Identifier: Apache-2.0

package codec

import "sync"

var reviews = sync.Pool{New: func() any { return new(Review) }}

// AcquireReview returns an empty Review from the pool.
func AcquireReview() *Review { return reviews.Get().(*Review) }

// ReleaseReview releases the Review's Body and returns r to the pool. Nothing
// borrowed from r may be used afterwards.
func ReleaseReview(r *Review) {
	if r.Body != nil {
		r.Body.Release()
	}
	r.reset()
	reviews.Put(r)
}

// Decode fills r from body in one strict pass and retains body until
// ReleaseReview. It fails with a *RequestError where the version and the uid are
// set all the same, wherever in body the defect is, and with an *EnvelopeError
// otherwise (rows B1 to B13). What is in the objects beside apiVersion, kind and
// metadata belongs to the webhooks: it must be JSON, but its strings may hold what
// is not Unicode. A Review is decoded once.
func (r *Review) Decode(body *Body) error {
	return r.decode(body, JSON, (*decoder).readReview)
}

// DecodeProtobuf is Decode for a body in Kubernetes' protobuf. The objects in it
// must be JSON: the webhooks that take JSON get those bytes.
func (r *Review) DecodeProtobuf(body *Body) error {
	return r.decode(body, Protobuf, (*decoder).readProtobuf)
}

func (r *Review) decode(body *Body, e Encoding, read func(*decoder) bool) error {
	r.Body, r.Encoding = body.Retain(), e
	err := r.read(read)
	defect, ok := err.(*EnvelopeError)
	if !ok || !r.readHead(true) {
		return err
	}
	return &RequestError{Pointer: defect.Pointer, Member: defect.Member, Reason: defect.Reason}
}

func (r *Review) read(read func(*decoder) bool) error {
	d := acquireDecoder(r.Body.Bytes())
	defer d.release()
	d.review, d.scratch = r, r.scratch
	if read(d) {
		d.complete()
	}
	r.scratch = d.scratch
	return d.err()
}

// ScanObject fills o with what admission reads of the object raw, strictly as
// Decode does for the objects in a Review. o borrows from raw. It fails with a
// *RequestError.
func ScanObject(o *Object, raw []byte) error {
	*o = Object{Labels: o.Labels[:0]}
	d := acquireDecoder(raw)
	defer d.release()
	d.depth = reviewDepth
	if d.readAlone(o) {
		return nil
	}
	return d.asRequestError()
}

// CheckJSON makes sure that raw is one JSON value in UTF-8. It fails with a
// *RequestError.
func CheckJSON(raw []byte) error {
	d := acquireDecoder(raw)
	defer d.release()
	d.checkUTF8()
	if d.skip() && d.finish() {
		return nil
	}
	return d.asRequestError()
}

// reviewDepth is how deep an object is in a Review: one that could not be spliced
// into it is not accepted alone.
const reviewDepth = 2

// readAlone reads an object that is the whole document.
func (d *decoder) readAlone(o *Object) bool {
	d.checkUTF8()
	return d.readAdmitted(o) && d.finish() && d.request == nil
}

// asRequestError returns what went wrong with an object that is in no envelope.
func (d *decoder) asRequestError() error {
	switch e := d.err().(type) {
	case *EnvelopeError:
		return &RequestError{Pointer: e.Pointer, Member: e.Member, Reason: e.Reason}
	default:
		return e
	}
}
