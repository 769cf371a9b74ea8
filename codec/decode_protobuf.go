// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"unicode/utf8"
)

// The messages of a review (runtime.Unknown around admission.k8s.io's
// AdmissionReview).
var (
	reviewEnvelope = message[*decoder]{
		{1, "typeMeta", wireBytes, false, func(d *decoder, v wireValue) bool { return readMessage(d, v.bytes, reviewType) }},
		{2, "raw", wireBytes, false, func(d *decoder, v wireValue) bool { return readMessage(d, v.bytes, reviewMessage) }},
		{3, "contentEncoding", wireBytes, false, (*decoder).takeContent},
		{4, "contentType", wireBytes, false, (*decoder).takeContent},
	}
	reviewType = message[*decoder]{
		{1, "apiVersion", wireBytes, false, named("apiVersion", func(d *decoder, v wireValue) bool { return d.takeVersion(v.bytes) })},
		{2, "kind", wireBytes, false, named("kind", func(d *decoder, v wireValue) bool { return d.takeReviewKind(v.bytes) })},
	}
	reviewMessage = message[*decoder]{
		{1, "request", wireBytes, false, named("request", (*decoder).takeRequest)},
	}
	requestMessage = message[*decoder]{
		{1, "uid", wireBytes, false, named("uid", func(d *decoder, v wireValue) bool { return d.takeText(v, new([]byte)) && d.takeUID(v.bytes) })},
		{2, "kind", wireBytes, false, named("kind", func(d *decoder, v wireValue) bool { return d.takeKind(v, &d.review.Kind) })},
		{3, "resource", wireBytes, false, named("resource", func(d *decoder, v wireValue) bool { return d.takeResource(v, &d.review.Resource) })},
		{4, "subResource", wireBytes, false, into("subResource", func(d *decoder) *[]byte { return &d.review.SubResource })},
		{5, "name", wireBytes, false, into("name", func(d *decoder) *[]byte { return &d.review.Name })},
		{6, "namespace", wireBytes, false, into("namespace", func(d *decoder) *[]byte { return &d.review.Namespace })},
		{7, "operation", wireBytes, false, named("operation", (*decoder).takeOperation)},
		{8, "userInfo", wireBytes, false, named("userInfo", (*decoder).takeUser)},
		{9, "object", wireBytes, false, named("object", (*decoder).takeNewObject)},
		{10, "oldObject", wireBytes, false, named("oldObject", (*decoder).takeOldObject)},
		{11, "dryRun", wireVarint, false, named("dryRun", (*decoder).takeDryRun)},
		{12, "options", wireBytes, false, named("options", (*decoder).takeOptions)},
		{13, "requestKind", wireBytes, false, named("requestKind", (*decoder).takeRequestKind)},
		{14, "requestResource", wireBytes, false, named("requestResource", (*decoder).takeRequestResource)},
		{15, "requestSubResource", wireBytes, false, into("requestSubResource", func(d *decoder) *[]byte { return &d.review.RequestSubResource })},
	}
	kindMessage = message[*decoder]{
		{1, "group", wireBytes, false, into("group", func(d *decoder) *[]byte { return &d.group })},
		{2, "version", wireBytes, false, into("version", func(d *decoder) *[]byte { return &d.version })},
		{3, "kind", wireBytes, false, into("kind", func(d *decoder) *[]byte { return &d.kind })},
	}
	resourceMessage = message[*decoder]{
		{1, "group", wireBytes, false, into("group", func(d *decoder) *[]byte { return &d.group })},
		{2, "version", wireBytes, false, into("version", func(d *decoder) *[]byte { return &d.version })},
		{3, "resource", wireBytes, false, into("resource", func(d *decoder) *[]byte { return &d.resource })},
	}
)

// readProtobuf reads the whole review.
func (d *decoder) readProtobuf() bool {
	data, ok := bytes.CutPrefix(d.data, []byte(envelopeMagic))
	if !ok {
		return d.malformed(faultMagic)
	}
	return readMessage(d, data, reviewEnvelope) && d.answerable()
}

// A review in which a field is twice is refused, as one with a duplicate key is;
// one whose fields are of other types is not an AdmissionReview.

func (d *decoder) noteField(name string, again bool) bool {
	return !again || d.refuse(d.at.member(name), "duplicate field")
}

func (d *decoder) mistyped(name string) bool {
	return d.refuse(d.at.member(name), "must have another wire type")
}

func (d *decoder) malformed(fault string) bool {
	return d.refuse(d.at.String(), "not Kubernetes' protobuf: "+fault)
}

// named returns read with the decoder at the field name.
func named(name string, read func(*decoder, wireValue) bool) func(*decoder, wireValue) bool {
	return func(d *decoder, v wireValue) bool {
		d.at.push(name)
		ok := read(d, v)
		d.at.pop()
		return ok
	}
}

// into returns what reads the string dst, a field of that name.
func into(name string, dst func(*decoder) *[]byte) func(*decoder, wireValue) bool {
	return named(name, func(d *decoder, v wireValue) bool { return d.takeText(v, dst(d)) })
}

func (d *decoder) takeText(v wireValue, dst *[]byte) bool {
	if !utf8.Valid(v.bytes) {
		return d.refuse(d.at.String(), faultUTF8)
	}
	*dst = v.bytes
	return true
}

// takeContent: the content of the envelope is protobuf and nothing else.
func (d *decoder) takeContent(v wireValue) bool {
	return len(v.bytes) == 0 || string(v.bytes) == MediaTypeProtobuf || d.malformed("it is around something else")
}

func (d *decoder) takeRequest(v wireValue) bool {
	d.has.request = true
	return readMessage(d, v.bytes, requestMessage)
}

func (d *decoder) takeKind(v wireValue, dst *GroupVersionKind) bool {
	d.names = names{}
	ok := readMessage(d, v.bytes, kindMessage)
	*dst = GroupVersionKind{d.group, d.version, d.kind}
	return ok
}

func (d *decoder) takeResource(v wireValue, dst *GroupVersionResource) bool {
	d.names = names{}
	ok := readMessage(d, v.bytes, resourceMessage)
	*dst = GroupVersionResource{d.group, d.version, d.resource}
	return ok
}

func (d *decoder) takeRequestKind(v wireValue) bool {
	d.has.requestKind = true
	return d.takeKind(v, &d.review.RequestKind)
}

func (d *decoder) takeRequestResource(v wireValue) bool {
	d.has.requestResource = true
	return d.takeResource(v, &d.review.RequestResource)
}

func (d *decoder) takeOperation(v wireValue) bool {
	d.review.Operation = parseOperation(v.bytes)
	return d.takeText(v, new([]byte))
}

func (d *decoder) takeDryRun(v wireValue) bool {
	d.has.dryRun = true
	d.review.DryRun = v.number == 1
	return v.number <= 1 || d.refuse(d.at.String(), "must be true or false")
}
