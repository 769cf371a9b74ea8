// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"slices"
)

// AppendProtobuf appends r as an AdmissionReview of version v in Kubernetes'
// protobuf to dst, with object in place of the received one if object is not
// nil. Objects and options are in it as the JSON that was received: nothing of
// them is lost, whatever their kind. Fields of the envelope that admission.k8s.io
// does not have are left out, for which protobuf has no place.
func (r *Review) AppendProtobuf(dst []byte, v Version, object []byte) []byte {
	c := r.cargo(object, nil)
	return r.appendProtobuf(dst, v, &c)
}

// cargo is what may stand in a review in place of what was received, or without
// admission looking into it: nil is none.
type cargo struct{ uid, object, oldObject, options []byte }

func (r *Review) cargo(object, uid []byte) cargo {
	if uid == nil {
		uid = r.UID
	}
	if object == nil {
		object = r.Object.Raw
	}
	return cargo{uid, object, r.OldObject.Raw, r.Options}
}

func (r *Review) appendProtobuf(dst []byte, v Version, c *cargo) []byte {
	request := r.requestSize(c)
	review := fieldSize(request)
	dst = slices.Grow(dst, review+maxEnvelopeSize)
	dst = appendEnvelopeHead(dst, v, review)
	dst = appendHead(dst, 1, request)
	dst = r.appendRequest(dst, c)
	return append(dst, envelopeTail...)
}

// appendRequest appends the AdmissionRequest, whose fields are those of
// k8s.io/api/admission/v1/generated.proto; v1beta1 has the same. Strings and
// messages are there even if they are empty, pointers only if they are set.
func (r *Review) appendRequest(dst []byte, c *cargo) []byte {
	dst = appendText(dst, 1, c.uid)
	dst = appendNames(dst, 2, r.Kind.names())
	dst = appendNames(dst, 3, r.Resource.names())
	dst = appendText(dst, 4, r.SubResource)
	dst = appendText(dst, 5, r.Name)
	dst = appendText(dst, 6, r.Namespace)
	dst = appendText(dst, 7, r.Operation.String())
	dst = appendUser(dst, 8, &r.User)
	dst = appendRaw(dst, 9, c.object)
	dst = appendRaw(dst, 10, c.oldObject)
	if r.has.dryRun {
		dst = appendBool(dst, 11, r.DryRun)
	}
	dst = appendRaw(dst, 12, c.options)
	if r.has.requestKind {
		dst = appendNames(dst, 13, r.RequestKind.names())
	}
	if r.has.requestResource {
		dst = appendNames(dst, 14, r.RequestResource.names())
	}
	return appendText(dst, 15, r.requestSubResource)
}

// requestSize returns how many bytes appendRequest appends.
func (r *Review) requestSize(c *cargo) int {
	size := fieldSize(len(c.uid)) + fieldSize(r.Kind.names().size()) + fieldSize(r.Resource.names().size()) +
		fieldSize(len(r.SubResource)) + fieldSize(len(r.Name)) + fieldSize(len(r.Namespace)) +
		fieldSize(len(r.Operation.String())) + fieldSize(userSize(&r.User)) +
		fieldSize(rawSize(c.object)) + fieldSize(rawSize(c.oldObject)) + fieldSize(rawSize(c.options)) +
		fieldSize(len(r.requestSubResource))
	if r.has.dryRun {
		size += boolSize
	}
	if r.has.requestKind {
		size += fieldSize(r.RequestKind.names().size())
	}
	if r.has.requestResource {
		size += fieldSize(r.RequestResource.names().size())
	}
	return size
}

// threeNames are the fields of a GroupVersionKind or GroupVersionResource.
type threeNames [3][]byte

func (k *GroupVersionKind) names() threeNames     { return threeNames{k.Group, k.Version, k.Kind} }
func (k *GroupVersionResource) names() threeNames { return threeNames{k.Group, k.Version, k.Resource} }

func (n threeNames) size() int {
	return fieldSize(len(n[0])) + fieldSize(len(n[1])) + fieldSize(len(n[2]))
}

func appendNames(dst []byte, number uint8, n threeNames) []byte {
	dst = openMessage(dst, number)
	start := len(dst)
	dst = appendText(dst, 1, n[0])
	dst = appendText(dst, 2, n[1])
	return closeMessage(appendText(dst, 3, n[2]), start)
}

// appendRaw appends a runtime.RawExtension, which is empty for nil.
func appendRaw(dst []byte, number uint8, raw []byte) []byte {
	dst = appendHead(dst, number, rawSize(raw))
	if raw == nil {
		return dst
	}
	return appendText(dst, 1, raw)
}

func rawSize(raw []byte) int {
	if raw == nil {
		return 0
	}
	return fieldSize(len(raw))
}

// appendUser appends an authentication.k8s.io UserInfo.
func appendUser(dst []byte, number uint8, u *UserInfo) []byte {
	dst = openMessage(dst, number)
	start := len(dst)
	dst = appendText(dst, 1, u.Username)
	dst = appendText(dst, 2, u.UID)
	dst = appendTexts(dst, 3, u.Groups)
	for i := range u.Extra {
		dst = appendExtra(dst, 4, &u.Extra[i])
	}
	return closeMessage(dst, start)
}

func userSize(u *UserInfo) int {
	size := fieldSize(len(u.Username)) + fieldSize(len(u.UID)) + textsSize(u.Groups)
	for i := range u.Extra {
		size += fieldSize(extraSize(&u.Extra[i]))
	}
	return size
}

// appendExtra appends an entry of the map of ExtraValues.
func appendExtra(dst []byte, number uint8, e *ExtraValue) []byte {
	dst = appendHead(dst, number, extraSize(e))
	dst = appendText(dst, 1, e.Key)
	dst = appendHead(dst, 2, textsSize(e.Values))
	return appendTexts(dst, 1, e.Values)
}

func extraSize(e *ExtraValue) int {
	return fieldSize(len(e.Key)) + fieldSize(textsSize(e.Values))
}

func appendTexts(dst []byte, number uint8, texts [][]byte) []byte {
	for _, text := range texts {
		dst = appendText(dst, number, text)
	}
	return dst
}

func textsSize(texts [][]byte) int {
	size := 0
	for _, text := range texts {
		size += fieldSize(len(text))
	}
	return size
}
