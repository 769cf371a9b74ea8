// SPDX-License-Identifier: Apache-2.0

package codec

import "slices"

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
		splices[1].with = appendString(nil, uid)
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
