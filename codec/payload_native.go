// SPDX-License-Identifier: Apache-2.0

package codec

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
