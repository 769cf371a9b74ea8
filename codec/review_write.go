// SPDX-License-Identifier: Apache-2.0

package codec

import "sync"

// Forms are one Review in every form that somebody has asked for: each is made once,
// and shared by reference like the bytes that were received. Forms belong to one
// goroutine at a time, and stay where they are; the Bodies that they give out do not.
type Forms struct {
	Review     *Review    // which must outlive the Forms
	Object     []byte     // in place of the received one, never written again; nil: as received
	UID        []byte     // likewise
	Transcoder Transcoder // nil: ProtobufNative is Protobuf

	made   []madeForm
	room   [2]madeForm // for made: hardly anybody wants more
	native nativeObjects
}

type madeForm struct {
	form Form
	body *Body
}

// Get returns the Review in a form. Where that is what was received, it is the
// received Body itself; where ProtobufNative would lose something, it is the Body of
// Protobuf. f keeps its own reference until Release: whoever needs the Body longer
// retains it.
func (f *Forms) Get(form Form) *Body {
	if body := f.Find(form); body != nil {
		return body
	}
	body := f.make(form)
	if f.made == nil {
		f.made = f.room[:0]
	}
	f.made = append(f.made, madeForm{form, body})
	return body
}

// Find is Get of what is there already; nil if it would have to be made.
func (f *Forms) Find(form Form) *Body {
	if form == f.Review.form() && f.Object == nil && f.UID == nil {
		return f.Review.Body
	}
	for i := range f.made {
		if f.made[i].form == form {
			return f.made[i].body
		}
	}
	return nil
}

// make makes a form, sharing what is the same in other forms.
func (f *Forms) make(form Form) *Body {
	if form.Encoding == ProtobufNative && !f.native.make(f) {
		form.Encoding = Protobuf
		return f.Get(form).Retain()
	}
	if form.Coding != Identity {
		plain := f.Get(Form{form.Version, form.Encoding, Identity})
		return newPooled(AppendCompressed(takeBuffer(), form.Coding, plain.Bytes()))
	}
	switch memory := takeBuffer(); form.Encoding {
	case ProtobufNative:
		return newPooled(f.Review.appendProtobuf(memory, form.Version, &f.native.cargo))
	case Protobuf:
		c := f.Review.cargo(f.Object, f.UID)
		return newPooled(f.Review.appendProtobuf(memory, form.Version, &c))
	default:
		return newPooled(f.Review.appendReview(memory, form.Version, f.Object, f.UID))
	}
}

// Release drops what was made, of which calls under way may have references of their
// own. f may be used again.
func (f *Forms) Release() {
	for _, m := range f.made {
		m.body.Release()
	}
	clear(f.made)
	f.made = f.made[:0]
	f.native.release()
}

// Transcoder turns the JSON of objects into Kubernetes' native protobuf.
type Transcoder interface {
	// AppendNative appends object, which is JSON of that apiVersion and kind, as
	// native protobuf with its envelope to dst. ok is false where that would lose
	// something or the kind is unknown; out is then of no use but as memory.
	AppendNative(dst, apiVersion, kind, object []byte) (out []byte, ok bool)
}

// nativeObjects are the objects of Forms as native protobuf. They are made once for
// all versions.
type nativeObjects struct {
	cargo
	memory   []byte // of the cargo, pooled
	made, ok bool
}

// make makes the native objects, unless they are. It fails where one of them
// cannot be native, or there is none.
func (n *nativeObjects) make(f *Forms) bool {
	if !n.made && f.Transcoder != nil {
		n.made, n.memory, n.cargo = true, takeBuffer(), f.Review.cargo(f.Object, f.UID)
		n.ok = n.transcode(f.Transcoder, f.Review)
	}
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
		giveBuffer(n.memory)
	}
	*n = nativeObjects{}
}

// maxPooledBuffer is the size of the largest buffer that is pooled: it holds nearly
// every review, and a rare huge one is better left to the collector than kept for
// ever.
const maxPooledBuffer = 256 << 10

var buffers sync.Pool // of *[]byte, up to maxPooledBuffer

// takeBuffer returns an empty slice, of any capacity.
func takeBuffer() []byte {
	if b, ok := buffers.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return nil
}

func giveBuffer(b []byte) {
	if cap(b) <= maxPooledBuffer {
		kept := b // what is not kept is not moved to the heap
		buffers.Put(&kept)
	}
}

// newPooled returns a Body of a buffer.
func newPooled(data []byte) *Body { return NewBody(data, giveBuffer) }
