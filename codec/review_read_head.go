// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"github.com/admission-dispatcher/dispatcher/codec/json"
)

// head is what an answer needs of a review.
type head struct {
	isReview bool
	version  Version
	uid      []byte
}

func (h *head) isComplete() bool { return h.isReview && h.version != 0 && h.uid != nil }

// setKind, setVersion and setUID report false for a value that is not acceptable,
// and for a second one: readers disagree about which of two counts.
func (h *head) setKind(kind []byte) bool {
	first := !h.isReview
	h.isReview = string(kind) == reviewKind
	return first && h.isReview
}

func (h *head) setVersion(version []byte) bool {
	first := h.version == 0
	h.version = parseAPIVersion(version)
	return first && h.version != 0
}

func (h *head) setUID(uid []byte) bool {
	if h.uid != nil || !utf8.Valid(uid) || invalidUID(uid) != "" {
		return false
	}
	h.uid = uid
	return true
}

// fromJSON reads the document of r.
func (h *head) fromJSON(r *json.Reader, whole bool) bool {
	// Of a part no more is read than is needed.
	enough := func() bool { return !whole && h.isComplete() }
	well := r.Each(func(key []byte) bool {
		switch {
		case enough():
			return false
		case string(key) == "kind":
			return requires(r, h.setKind)
		case string(key) == "apiVersion":
			return requires(r, h.setVersion)
		case string(key) != "request":
			return r.Pass()
		}
		return r.Each(func(key []byte) bool {
			if enough() {
				return false
			}
			if string(key) == "uid" {
				return requires(r, h.setUID)
			}
			return r.Pass()
		})
	})
	return enough() || well && r.End()
}

// requires hands the string at pos to set. Anything else will not do.
func requires(r *json.Reader, set func([]byte) bool) bool {
	if r.Next() != '"' {
		return false
	}
	text, ok := r.Text()
	return ok && set(text)
}

// fromProtobuf reads a review in protobuf.
func (h *head) fromProtobuf(data []byte, whole bool) bool {
	data, ok := bytes.CutPrefix(data, []byte(envelopeMagic))
	if !ok {
		return false
	}
	well := eachField(data, whole, func(number uint64, value []byte, isWhole bool) bool {
		switch number {
		case 1:
			return isWhole && eachField(value, true, func(number uint64, value []byte, _ bool) bool {
				switch number {
				case 1:
					return h.setVersion(value)
				case 2:
					return h.setKind(value)
				}
				return true
			})
		case 2:
			return eachField(value, whole, func(number uint64, value []byte, _ bool) bool {
				return number != 1 || eachField(value, whole, func(number uint64, value []byte, isWhole bool) bool {
					return number != 1 || isWhole && h.setUID(value)
				})
			})
		case 3, 4:
			return len(value) == 0 || string(value) == MediaTypeProtobuf
		}
		return true
	})
	return well || !whole && h.isComplete()
}

// eachField has visit read the fields of the message data that are strings, bytes or
// messages. Where data is not whole the last value may be cut short.
func eachField(data []byte, whole bool, visit func(number uint64, value []byte, isWhole bool) bool) bool {
	for len(data) > 0 {
		number, wire, v, size, fault := readField(data)
		if fault == faultShort && wire == wireBytes && !whole {
			_, n := binary.Uvarint(data)
			_, m := binary.Uvarint(data[n:])
			return m > 0 && visit(number, data[n+m:], false)
		}
		if fault != "" || wire == wireBytes && !visit(number, v.bytes, true) {
			return false
		}
		data = data[size:]
	}
	return true
}
