// SPDX-License-Identifier: Apache-2.0

package codec

import "bytes"

// jsonReview reads a review in JSON.
type jsonReview struct{ *decoder }

// read reads the whole document.
func (d jsonReview) read() bool {
	d.CheckUTF8()
	if d.Next() != '{' {
		return d.refuseValue("must be an object")
	}
	return strictMembers(&d.strict, d, &envelopeFields) && d.Finish() && d.answerable()
}

var envelopeFields = table[jsonReview]{
	unique: true,
	fields: []field[jsonReview]{
		{"kind", jsonReview.readReviewKind, nil},
		{"apiVersion", jsonReview.readReviewVersion, nil},
		{"request", jsonReview.readRequest, nil},
		{"response", jsonReview.readResponse, nil},
	},
}

func (d jsonReview) readReviewKind() bool {
	kind, ok := d.required()
	return ok && d.takeReviewKind(kind)
}

func (d jsonReview) readReviewVersion() bool {
	d.Next()
	start := d.Pos
	version, ok := d.required()
	if !ok {
		return false
	}
	d.review.apiVersionSpan = span{start, d.Pos}
	return d.takeVersion(version)
}

// readResponse skips the response, which a request has no use for.
func (d jsonReview) readResponse() bool { return d.Skip() }

var requestFields = table[jsonReview]{
	unique: true,
	fields: []field[jsonReview]{
		{"uid", jsonReview.readUID, nil},
		{"kind", jsonReview.readOwnKind, nil},
		{"resource", jsonReview.readOwnResource, nil},
		{"subResource", func(d jsonReview) bool { return d.readString(&d.review.SubResource) }, nil},
		{"requestKind", jsonReview.readRequestKind, nil},
		{"requestResource", jsonReview.readRequestResource, nil},
		{"requestSubResource", func(d jsonReview) bool { return d.readString(&d.review.RequestSubResource) }, nil},
		{"name", func(d jsonReview) bool { return d.readString(&d.review.Name) }, nil},
		{"namespace", func(d jsonReview) bool { return d.readString(&d.review.Namespace) }, nil},
		{"operation", jsonReview.readOperation, nil},
		{"userInfo", func(d jsonReview) bool { return strictObject(&d.strict, d, &userFields) }, nil},
		{"object", jsonReview.readNewObject, nil},
		{"oldObject", func(d jsonReview) bool { return objectReader(d).read(&d.review.OldObject) }, nil},
		{"dryRun", jsonReview.readDryRun, nil},
		{"options", jsonReview.readOptions, nil},
	},
}

var kindFields = table[jsonReview]{
	unique: true,
	fields: []field[jsonReview]{
		{"group", func(d jsonReview) bool { return d.readString(&d.group) }, nil},
		{"version", func(d jsonReview) bool { return d.readString(&d.version) }, nil},
		{"kind", func(d jsonReview) bool { return d.readString(&d.kind) }, nil},
	},
}

var resourceFields = table[jsonReview]{
	unique: true,
	fields: []field[jsonReview]{
		{"group", func(d jsonReview) bool { return d.readString(&d.group) }, nil},
		{"version", func(d jsonReview) bool { return d.readString(&d.version) }, nil},
		{"resource", func(d jsonReview) bool { return d.readString(&d.resource) }, nil},
	},
}

func (d jsonReview) readRequest() bool {
	if d.Next() != '{' {
		return d.refuseValue("must be an object")
	}
	d.has.request = true
	return strictMembers(&d.strict, d, &requestFields)
}

func (d jsonReview) readUID() bool {
	d.Next()
	start := d.Pos
	uid, ok := d.required()
	if !ok {
		return false
	}
	d.review.uidSpan = span{start, d.Pos}
	return d.takeUID(uid)
}

func (d jsonReview) readKind(dst *GroupVersionKind) bool {
	d.names = names{}
	ok := strictObject(&d.strict, d, &kindFields)
	*dst = GroupVersionKind{d.group, d.version, d.kind}
	return ok
}

func (d jsonReview) readResource(dst *GroupVersionResource) bool {
	d.names = names{}
	ok := strictObject(&d.strict, d, &resourceFields)
	*dst = GroupVersionResource{d.group, d.version, d.resource}
	return ok
}

func (d jsonReview) readOwnKind() bool {
	d.Next()
	start := d.Pos
	ok := d.readKind(&d.review.Kind)
	d.kindSpan = span{start, d.Pos}
	return ok
}

func (d jsonReview) readOwnResource() bool {
	d.Next()
	start := d.Pos
	ok := d.readResource(&d.review.Resource)
	d.resourceSpan = span{start, d.Pos}
	return ok
}

func (d jsonReview) readRequestKind() bool {
	d.has.requestKind = d.Next() == '{'
	if d.repeats(d.kindSpan) {
		d.review.RequestKind = d.review.Kind
		return true
	}
	return d.readKind(&d.review.RequestKind)
}

func (d jsonReview) readRequestResource() bool {
	d.has.requestResource = d.Next() == '{'
	if d.repeats(d.resourceSpan) {
		d.review.RequestResource = d.review.Resource
		return true
	}
	return d.readResource(&d.review.RequestResource)
}

// repeats consumes the value at pos if it is written as the object at s: the
// requested kind and resource nearly always are the kind and the resource.
func (d jsonReview) repeats(s span) bool {
	n := s.end - s.start
	if n == 0 || d.Data[s.start] != '{' || !bytes.HasPrefix(d.Data[d.Pos:], d.Data[s.start:s.end]) {
		return false
	}
	d.Pos += n
	return true
}

func (d jsonReview) readOperation() bool {
	var name []byte
	if !d.readString(&name) {
		return false
	}
	d.review.Operation = parseOperation(name)
	return true
}

func (d jsonReview) readNewObject() bool {
	d.Next()
	start := d.Pos
	ok := objectReader(d).read(&d.review.Object)
	d.review.objectSpan = span{start, d.Pos}
	return ok
}

func (d jsonReview) readDryRun() bool {
	switch d.Next() {
	case 't', 'f':
		d.has.dryRun = true
		d.review.DryRun = d.Data[d.Pos] == 't'
	case 'n':
	default:
		return d.reject("must be true or false")
	}
	return d.Skip()
}

func (d jsonReview) readOptions() bool {
	switch d.Next() {
	case '{':
	case 'n':
		return d.Skip()
	default:
		return d.reject("must be an object")
	}
	start := d.Pos
	ok := d.Skip()
	d.review.Options = d.Data[start:d.Pos:d.Pos]
	return ok
}

var userFields = table[jsonReview]{
	unique: true,
	fields: []field[jsonReview]{
		{"username", func(d jsonReview) bool { return d.readString(&d.review.User.Username) }, nil},
		{"uid", func(d jsonReview) bool { return d.readString(&d.review.User.UID) }, nil},
		{"groups", func(d jsonReview) bool { return d.readStrings(&d.review.User.Groups) }, nil},
		{"extra", jsonReview.readExtra, nil},
	},
}

// readExtra reads userInfo.extra, a map of arrays of strings. Its keys are data:
// they have no variants, but they must be unique.
func (d jsonReview) readExtra() bool {
	switch d.Next() {
	case '{':
	case 'n':
		return d.Skip()
	default:
		return d.reject("must be an object")
	}
	user, base := &d.review.User, len(d.keys)
	return d.Each(func(key []byte) bool {
		start := len(d.review.values)
		ok := d.count() && d.readStrings(&d.review.values)
		values := d.review.values[start:len(d.review.values):len(d.review.values)]
		user.Extra = append(user.Extra, ExtraValue{Key: key, Values: values})
		d.keys = append(d.keys, key)
		return ok
	}) && d.uniqueSince(base)
}
