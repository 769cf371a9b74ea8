// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// Decode fills r from body in one strict pass and retains body until
// ReleaseReview. It fails with a *RequestError where the version and the uid are
// set all the same, wherever in body the defect is, and with an *EnvelopeError
// otherwise (rows B1 to B13). What is in the objects beside apiVersion, kind and
// metadata belongs to the webhooks: it must be JSON, but its strings may hold what
// is not Unicode. A Review is decoded once.
func (r *Review) Decode(body *Body) error {
	return r.decode(body, JSON, func(d *decoder) bool { return jsonReview{d}.read() })
}

// DecodeProtobuf is Decode for a body in Kubernetes' protobuf. The objects in it
// must be JSON: the webhooks that take JSON get those bytes.
func (r *Review) DecodeProtobuf(body *Body) error {
	return r.decode(body, Protobuf, func(d *decoder) bool { return protobufReview{d}.read() })
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

// DecodeHead is Decode for the beginning of a body whose rest will not be read. It
// sets version and uid, so that r can be answered, and nothing else. It reports
// whether body has both; of two uids it sees the first, as kube-apiserver writes it
// in front of everything that a user chooses.
func (r *Review) DecodeHead(body *Body, e Encoding) bool {
	r.Body, r.Encoding = body.Retain(), e
	return r.readHead(false)
}

// readHead looks for version and uid, and for nothing else. whole says that the Body
// is a whole document: it must be well-formed then, but for what Decode is strict
// about beyond that, and each of the two must be there once.
func (r *Review) readHead(whole bool) bool {
	d := acquireDecoder(r.Body.Bytes())
	defer d.release()
	d.Lenient, d.Scratch = true, r.scratch
	var h head
	var ok bool
	if r.Encoding == Protobuf {
		ok = h.fromProtobuf(d.Data, whole)
	} else {
		ok = h.fromJSON(&d.Reader, whole)
	}
	r.scratch = d.Scratch
	if !ok || !h.isComplete() {
		return false
	}
	if !utf8.Valid(d.Data) { // what was read before the defect was found may be shown
		body, encoding := r.Body, r.Encoding
		r.reset()
		r.Body, r.Encoding, r.scratch = body, encoding, d.Scratch
	}
	r.Version, r.UID = h.version, h.uid
	return true
}

// decoder fills a Review or an Object.
type decoder struct {
	strict
	pass
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
}

// names are the strings of the kind or resource being read.
type names struct{ group, version, kind, resource []byte }

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
	d.faults, d.pass, d.Scratch = faults{}, pass{}, nil
	d.keys = emptied(d.keys, maxPooledKeys)
	decoders.Put(d)
}

// takeReviewKind takes the kind of the document.
func (d *decoder) takeReviewKind(kind []byte) bool {
	if string(kind) != reviewKind {
		return d.refuse(d.at.String(), "must be AdmissionReview")
	}
	d.has.kind = true
	return true
}

// takeVersion takes the apiVersion.
func (d *decoder) takeVersion(version []byte) bool {
	if d.review.Version = parseAPIVersion(version); d.review.Version == 0 {
		return d.refuse(d.at.String(), "must be admission.k8s.io/v1 or admission.k8s.io/v1beta1")
	}
	return true
}

// parseAPIVersion returns the Version that apiVersion spells, or 0.
func parseAPIVersion(apiVersion []byte) Version {
	for v := V1; v <= V1beta1; v++ {
		if string(apiVersion) == v.APIVersion() {
			return v
		}
	}
	return 0
}

func (d *decoder) takeUID(uid []byte) bool {
	if reason := invalidUID(uid); reason != "" {
		return d.refuse(d.at.String(), reason)
	}
	d.review.UID = uid
	return true
}

// maxUID is the length of the longest uid that we answer to, in bytes.
// kube-apiserver's has 36.
const maxUID = 128

// invalidUID says why we do not answer to uid, or "". It ends up in log lines
// and audit records of others.
func invalidUID(uid []byte) string {
	switch {
	case len(uid) == 0:
		return "must not be empty"
	case len(uid) > maxUID:
		return "must not be longer than 128 bytes"
	}
	for i := 0; i < len(uid); {
		r, n := utf8.DecodeRune(uid[i:])
		if unicode.IsControl(r) {
			return "must not contain control characters"
		}
		i += n
	}
	return ""
}

// answerable makes sure that the envelope has what an answer needs.
func (d *decoder) answerable() bool {
	switch r := d.review; {
	case !d.has.kind:
		return d.refuse("/kind", "required")
	case r.Version == 0:
		return d.refuse("/apiVersion", "required")
	case !d.has.request:
		return d.refuse("/request", "required")
	case r.UID == nil:
		return d.refuse("/request/uid", "required")
	}
	return true
}

// parseOperation returns the operation of that name, or 0.
func parseOperation(name []byte) Operation {
	for o := Create; o <= Connect; o++ {
		if string(name) == o.String() {
			return o
		}
	}
	return 0
}

// complete makes sure that the request says what it is about, and fills in what
// the caller may leave out.
func (d *decoder) complete() {
	r := d.review
	r.has, r.requestSubResource = d.has, r.RequestSubResource
	r.HasRequestResource = d.has.requestKind && d.has.requestResource
	if !d.has.requestKind {
		r.RequestKind = r.Kind
	}
	if !d.has.requestResource {
		r.RequestResource, r.RequestSubResource = r.Resource, r.SubResource
	}
	switch {
	case d.request != nil: // the first RequestError stands
	case r.Operation == 0:
		d.request = &RequestError{Pointer: "/request/operation", Reason: "must be CREATE, UPDATE, DELETE or CONNECT"}
	case len(r.Resource.Resource) == 0:
		d.request = &RequestError{Pointer: "/request/resource", Reason: "required"}
	}
}
