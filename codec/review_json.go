// SPDX-License-Identifier: Apache-2.0

package codec

import "strconv"

// appendJSON appends r as an AdmissionReview in JSON, its fields in the order in
// which kube-apiserver writes them.
func (r *Review) appendJSON(dst []byte, v Version, c *cargo) []byte {
	dst = append(dst, `{"kind":"AdmissionReview","apiVersion":`...)
	dst = append(dst, quotedVersion(v)...)
	dst = appendString(append(dst, `,"request":{"uid":`...), c.uid)
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
	dst = appendString(append(dst, `,"operation":`...), r.Operation.String())
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
	dst = appendString(append(dst, head...), n[0])
	dst = appendString(append(dst, `,"version":`...), n[1])
	dst = appendString(append(dst, last...), n[2])
	return append(dst, '}')
}

// appendField appends key, which brings its comma and colon, and the string
// value; nothing where value is empty.
func appendField(dst []byte, key string, value []byte) []byte {
	if len(value) == 0 {
		return dst
	}
	return appendString(append(dst, key...), value)
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
	dst = appendString(append(dst, `{"username":`...), u.Username)
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
		dst = appendString(append(dst, open), u.Extra[i].Key)
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
		dst = appendString(dst, text)
	}
	return append(dst, ']')
}
