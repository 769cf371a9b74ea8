// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"sync"

	"github.com/admission-dispatcher/dispatcher/codec/json"
)

var reviews = sync.Pool{New: func() any { return new(Review) }}

// AcquireReview returns an empty Review from the pool.
func AcquireReview() *Review { return reviews.Get().(*Review) }

// Retain adds a reference to r, to be given back with ReleaseReview.
func (r *Review) Retain() { r.retained.Add(1) }

// ReleaseReview drops a reference. With the last one the Review's Body is released
// and r returns to the pool: nothing borrowed from r may be used afterwards.
func ReleaseReview(r *Review) {
	if r.retained.Add(-1) >= 0 {
		return
	}
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
	d.review, d.Scratch = r, r.scratch
	if read(d) {
		d.complete()
	}
	r.scratch = d.Scratch
	return d.err()
}

// ScanObject fills o with what admission reads of the object raw, strictly as
// Decode does for the objects in a Review. o borrows from raw. It fails with a
// *RequestError.
func ScanObject(o *Object, raw []byte) error {
	*o = Object{Labels: o.Labels[:0]}
	d := acquireDecoder(raw)
	defer d.release()
	d.Depth = reviewDepth
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
	d.CheckUTF8()
	if d.Skip() && d.Finish() {
		return nil
	}
	return d.asRequestError()
}

// reviewDepth is how deep an object is in a Review: one that could not be spliced
// into it is not accepted alone.
const reviewDepth = 2

// readAlone reads an object that is the whole document.
func (d *decoder) readAlone(o *Object) bool {
	d.CheckUTF8()
	return d.readAdmitted(o) && d.Finish() && d.request == nil
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

// decoder fills a Review or an Object. Its fields' readers return false after an
// EnvelopeError, which ends the pass; a RequestError does not, because an
// EnvelopeError further on would outweigh it.
type decoder struct {
	json.Reader
	pass
	keys [][]byte // of the open objects whose keys must be unique
}

// pass is what a decoder knows of what it reads: all that must not get into the next.
type pass struct {
	review *Review
	object *Object // the object being read
	names          // of the kind or resource being read
	has    presence

	// Of the protobuf message being read: the content of a runtime.RawExtension,
	// and the key of an entry of userInfo.extra.
	raw, extraKey          []byte
	kindSpan, resourceSpan span // of the request's kind and resource in data

	at      pointer
	entries int // noted by count

	envelope *EnvelopeError
	request  *RequestError // the first
}

// maxEntries is how many keys that must be unique, labels and list elements a review
// may have: more than fit into the largest objects, and each takes several times the
// memory of the bytes that it is written with.
const maxEntries = 1 << 20

// count notes one more key or element to keep.
func (d *decoder) count() bool {
	d.entries++
	return d.entries <= maxEntries || d.refuse(d.at.String(), "more than 1,048,576 keys and elements are to be read")
}

// presence tells which fields were there, where their value cannot tell.
type presence struct{ kind, request, requestKind, requestResource, dryRun bool }

// decoders are pooled apart from Reviews: they are only needed while scanning,
// and weigh 16 KiB.
var decoders = sync.Pool{New: func() any { return new(decoder) }}

// maxPooledKeys is how many keys a pooled decoder has room for: plenty for every
// real object. What a hostile one needed goes back to the collector.
const maxPooledKeys = 1024

// acquireDecoder returns a decoder at the start of data.
func acquireDecoder(data []byte) *decoder {
	d := decoders.Get().(*decoder)
	d.Reset(data)
	return d
}

func (d *decoder) release() {
	d.Reset(nil)
	d.pass, d.Scratch = pass{}, nil
	d.keys = emptied(d.keys, maxPooledKeys)
	decoders.Put(d)
}

// refuse ends the pass with an EnvelopeError about the value at pointer.
func (d *decoder) refuse(pointer, reason string) bool {
	if d.envelope == nil {
		d.envelope = &EnvelopeError{Pointer: pointer, Reason: reason}
	}
	return false
}

// refuseMember is refuse for a member whose key the sender made up.
func (d *decoder) refuseMember(key []byte, reason string) bool {
	if d.envelope == nil {
		d.envelope = &EnvelopeError{Pointer: d.at.String(), Member: quoted(key), Reason: reason}
	}
	return false
}

// reject records a RequestError about the value being read and skips that.
func (d *decoder) reject(reason string) bool {
	if d.request == nil {
		d.request = &RequestError{Pointer: d.at.String(), Reason: reason}
	}
	return d.Skip()
}

// err returns what ended the pass, or what was recorded on the way.
func (d *decoder) err() error {
	switch {
	case d.envelope != nil:
		return d.envelope
	case d.Fault == json.FaultUTF8: // which is found later than it is passed
		return &EnvelopeError{Reason: d.SyntaxError()}
	case d.Fault != "":
		return &EnvelopeError{Pointer: d.at.String(), Reason: d.SyntaxError()}
	case d.request != nil:
		return d.request
	}
	return nil
}

// uniqueSince makes sure that the keys from base on are unique, and forgets them.
func (d *decoder) uniqueSince(base int) bool {
	if key := json.FirstDuplicate(d.keys[base:]); key != nil {
		return d.duplicate(key)
	}
	clear(d.keys[base:])
	d.keys = d.keys[:base]
	return true
}

func (d *decoder) duplicate(key []byte) bool { return d.refuseMember(key, duplicateKey) }

const duplicateKey = "duplicate key"
