// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"unicode"
	"unicode/utf8"
)

// maxUID is the length of the longest uid that we answer to, in bytes.
// kube-apiserver's has 36.
const maxUID = 128

var envelopeFields = table[*decoder]{
	unique: true,
	fields: []field[*decoder]{
		{"kind", (*decoder).readReviewKind, nil},
		{"apiVersion", (*decoder).readReviewVersion, nil},
		{"request", (*decoder).readRequest, nil},
		{"response", (*decoder).readResponse, nil},
	},
}

// readReview reads the whole document.
func (d *decoder) readReview() bool {
	d.CheckUTF8()
	if d.Next() != '{' {
		return d.refuseValue("must be an object")
	}
	return d.members(&envelopeFields) && d.Finish() && d.answerable()
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

// refuseValue refuses the value being read, unless it is not JSON at all.
func (d *decoder) refuseValue(reason string) bool {
	return d.Skip() && d.refuse(d.at.String(), reason)
}

func (d *decoder) readReviewKind() bool {
	kind, ok := d.required()
	return ok && d.takeReviewKind(kind)
}

// takeReviewKind takes the kind of the document.
func (d *decoder) takeReviewKind(kind []byte) bool {
	if string(kind) != reviewKind {
		return d.refuse(d.at.String(), "must be AdmissionReview")
	}
	d.has.kind = true
	return true
}

func (d *decoder) readReviewVersion() bool {
	d.Next()
	start := d.Pos
	version, ok := d.required()
	if !ok {
		return false
	}
	d.review.apiVersionSpan = span{start, d.Pos}
	return d.takeVersion(version)
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

// required consumes a string without which there is no answer.
func (d *decoder) required() (text []byte, ok bool) {
	if d.Next() != '"' {
		return nil, d.refuseValue("must be a string")
	}
	return d.Text()
}

func (d *decoder) readUID() bool {
	d.Next()
	start := d.Pos
	uid, ok := d.required()
	if !ok {
		return false
	}
	d.review.uidSpan = span{start, d.Pos}
	return d.takeUID(uid)
}

func (d *decoder) takeUID(uid []byte) bool {
	if reason := invalidUID(uid); reason != "" {
		return d.refuse(d.at.String(), reason)
	}
	d.review.UID = uid
	return true
}

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

// readResponse skips the response, which a request has no use for.
func (d *decoder) readResponse() bool { return d.Skip() }

// members reads the object at pos: what t knows by its readers, the rest by
// skipping it.
func (d *decoder) members(t *table[*decoder]) bool {
	if !d.Enter() {
		return false
	}
	var seen uint32 // a bit per field
	expected, base := 0, len(d.keys)
	first := true
	for ; d.More(first, '}'); first = false {
		i := expected
		if i >= len(t.fields) || !d.Expects(t.fields[i].name) {
			key, ok := d.Key()
			if !ok {
				return false
			}
			if i = t.find(key, expected); i < 0 {
				if !d.unknown(t, key) {
					return false
				}
				continue
			}
		}
		if seen&(1<<i) != 0 {
			return d.refuse(d.at.member(t.fields[i].name), duplicateKey)
		}
		seen |= 1 << i
		expected = i + 1
		d.at.push(t.fields[i].name)
		if !t.fields[i].read(d) {
			return false
		}
		d.at.pop()
	}
	return d.Fault == "" && d.uniqueSince(base)
}

// unknown skips the value of a key that t does not have.
func (d *decoder) unknown(t *table[*decoder], key []byte) bool {
	if i := t.variant(key); i >= 0 {
		return d.refuseMember(key, "the key is a case variant of "+t.fields[i].name)
	}
	if t.foreign {
		return d.SkipForeign()
	}
	if t.unique {
		if !d.count() {
			return false
		}
		d.keys = append(d.keys, key)
	}
	return d.Skip()
}

// readString reads a string into dst. Null is absent, as for Go's decoders.
func (d *decoder) readString(dst *[]byte) (ok bool) {
	switch d.Next() {
	case '"':
		*dst, ok = d.Text()
		return ok
	case 'n':
		return d.Skip()
	}
	return d.reject("must be a string")
}

// readStrings appends the elements of an array of strings to dst.
func (d *decoder) readStrings(dst *[][]byte) bool {
	switch d.Next() {
	case '[':
	case 'n':
		return d.Skip()
	default:
		return d.reject("must be an array of strings")
	}
	if !d.Enter() {
		return false
	}
	first := true
	for ; d.More(first, ']'); first = false {
		if d.Next() != '"' {
			if !d.reject("must be an array of strings") {
				return false
			}
			continue
		}
		text, ok := d.Text()
		if !ok || !d.count() {
			return false
		}
		*dst = append(*dst, text)
	}
	return d.Fault == ""
}

// readObject reads an object whose members t knows.
func (d *decoder) readObject(t *table[*decoder]) bool {
	switch d.Next() {
	case '{':
		return d.members(t)
	case 'n':
		return d.Skip()
	}
	return d.reject("must be an object")
}
