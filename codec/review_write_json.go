// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"slices"
	"strconv"

	"github.com/admission-dispatcher/dispatcher/codec/json"
)

// appendJSON appends r as an AdmissionReview in JSON, its fields in the order in
// which kube-apiserver writes them.
func (r *Review) appendJSON(dst []byte, v Version, c *cargo) []byte {
	dst = append(dst, `{"kind":"AdmissionReview","apiVersion":`...)
	dst = append(dst, quotedVersion(v)...)
	dst = json.AppendString(append(dst, `,"request":{"uid":`...), c.uid)
	dst = appendTriple(dst, `,"kind":{"group":`, r.Kind.names(), `,"kind":`)
	dst = appendTriple(dst, `,"resource":{"group":`, r.Resource.names(), `,"resource":`)
	dst = appendField(dst, `,"subResource":`, r.SubResource)
	if r.has.requestKind {
		dst = appendTriple(dst, `,"requestKind":{"group":`, r.RequestKind.names(), `,"kind":`)
	}
	if r.has.requestResource {
		dst = appendTriple(dst, `,"requestResource":{"group":`, r.RequestResource.names(), `,"resource":`)
	}
	dst = appendField(dst, `,"requestSubResource":`, r.requestSubResource)
	dst = appendField(dst, `,"name":`, r.Name)
	dst = appendField(dst, `,"namespace":`, r.Namespace)
	dst = json.AppendString(append(dst, `,"operation":`...), r.Operation.String())
	dst = appendUserJSON(append(dst, `,"userInfo":`...), &r.User)
	dst = appendValue(append(dst, `,"object":`...), c.object)
	dst = appendValue(append(dst, `,"oldObject":`...), c.oldObject)
	if r.has.dryRun {
		dst = strconv.AppendBool(append(dst, `,"dryRun":`...), r.DryRun)
	}
	dst = appendValue(append(dst, `,"options":`...), c.options)
	return append(dst, "}}"...)
}

// appendTriple appends a GroupVersionKind or GroupVersionResource.
func appendTriple(dst []byte, head string, n threeNames, last string) []byte {
	dst = json.AppendString(append(dst, head...), n[0])
	dst = json.AppendString(append(dst, `,"version":`...), n[1])
	dst = json.AppendString(append(dst, last...), n[2])
	return append(dst, '}')
}

// appendField appends key, which brings its comma and colon, and the string
// value; nothing where value is empty.
func appendField(dst []byte, key string, value []byte) []byte {
	if len(value) == 0 {
		return dst
	}
	return json.AppendString(append(dst, key...), value)
}

// appendValue appends JSON as it is, or null.
func appendValue(dst, value []byte) []byte {
	if value == nil {
		return append(dst, "null"...)
	}
	return append(dst, value...)
}

func appendUserJSON(dst []byte, u *UserInfo) []byte {
	// A field that is always there, for the others to follow.
	dst = json.AppendString(append(dst, `{"username":`...), u.Username)
	dst = appendField(dst, `,"uid":`, u.UID)
	if len(u.Groups) > 0 {
		dst = appendStrings(append(dst, `,"groups":`...), u.Groups)
	}
	if len(u.Extra) == 0 {
		return append(dst, '}')
	}
	dst = append(dst, `,"extra":`...)
	open := byte('{')
	for i := range u.Extra {
		dst = json.AppendString(append(dst, open), u.Extra[i].Key)
		dst = appendStrings(append(dst, ':'), u.Extra[i].Values)
		open = ','
	}
	return append(dst, "}}"...)
}

func appendStrings(dst []byte, texts [][]byte) []byte {
	dst = append(dst, '[')
	for i, text := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = json.AppendString(dst, text)
	}
	return append(dst, ']')
}

// AppendReview appends r as an AdmissionReview of version v to dst, with object
// in place of the received one if object is not nil. Everything else is the
// received bytes: only the two values are spliced. Where r came without an
// object there is nothing to replace: object must be nil. A review that came in
// protobuf is written anew around its objects.
func (r *Review) AppendReview(dst []byte, v Version, object []byte) []byte {
	return r.appendReview(dst, v, object, nil)
}

// appendReview is AppendReview with uid, in place of the
// received one if it is not nil.
func (r *Review) appendReview(dst []byte, v Version, object, uid []byte) []byte {
	if r.Encoding != JSON {
		c := r.cargo(object, uid)
		return r.appendJSON(dst, v, &c)
	}
	dst = slices.Grow(dst, r.Body.Len()+len(object)+len(uid)+len("v1beta1"))
	splices := [3]splice{{at: r.apiVersionSpan}, {at: r.uidSpan}, {at: r.objectSpan, with: object}}
	if v != r.Version {
		splices[0].with = quotedVersion(v)
	}
	if uid != nil {
		splices[1].with = json.AppendString(nil, uid)
	}
	slices.SortFunc(splices[:], func(x, y splice) int { return x.at.start - y.at.start })
	data, from := r.Body.Bytes(), 0
	for _, s := range splices {
		if s.with == nil || s.at == (span{}) {
			continue
		}
		dst = append(dst, data[from:s.at.start]...)
		dst = append(dst, s.with...)
		from = s.at.end
	}
	return append(dst, data[from:]...)
}

// splice is a value of the Body and what stands in its place; nil keeps it.
type splice struct {
	at   span
	with []byte
}

// quotedVersion returns the JSON string of v's apiVersion.
func quotedVersion(v Version) []byte {
	if v == V1beta1 {
		return []byte(`"admission.k8s.io/v1beta1"`)
	}
	return []byte(`"admission.k8s.io/v1"`)
}
