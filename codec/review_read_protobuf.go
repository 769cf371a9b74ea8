// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"unicode/utf8"

	"github.com/admission-dispatcher/dispatcher/codec/json"
)

// The messages of a review (runtime.Unknown around admission.k8s.io's
// AdmissionReview).
var (
	reviewEnvelope = message[protobufReview]{
		{1, "typeMeta", wireBytes, false, func(d protobufReview, v wireValue) bool { return readMessage(d, v.bytes, reviewType) }},
		{2, "raw", wireBytes, false, func(d protobufReview, v wireValue) bool { return readMessage(d, v.bytes, reviewMessage) }},
		{3, "contentEncoding", wireBytes, false, protobufReview.takeContent},
		{4, "contentType", wireBytes, false, protobufReview.takeContent},
	}
	reviewType = message[protobufReview]{
		{1, "apiVersion", wireBytes, false, named("apiVersion", func(d protobufReview, v wireValue) bool { return d.takeVersion(v.bytes) })},
		{2, "kind", wireBytes, false, named("kind", func(d protobufReview, v wireValue) bool { return d.takeReviewKind(v.bytes) })},
	}
	reviewMessage = message[protobufReview]{
		{1, "request", wireBytes, false, named("request", protobufReview.takeRequest)},
	}
	requestMessage = message[protobufReview]{
		{1, "uid", wireBytes, false, named("uid", func(d protobufReview, v wireValue) bool { return d.takeText(v, new([]byte)) && d.takeUID(v.bytes) })},
		{2, "kind", wireBytes, false, named("kind", func(d protobufReview, v wireValue) bool { return d.takeKind(v, &d.review.Kind) })},
		{3, "resource", wireBytes, false, named("resource", func(d protobufReview, v wireValue) bool { return d.takeResource(v, &d.review.Resource) })},
		{4, "subResource", wireBytes, false, into("subResource", func(d *decoder) *[]byte { return &d.review.SubResource })},
		{5, "name", wireBytes, false, into("name", func(d *decoder) *[]byte { return &d.review.Name })},
		{6, "namespace", wireBytes, false, into("namespace", func(d *decoder) *[]byte { return &d.review.Namespace })},
		{7, "operation", wireBytes, false, named("operation", protobufReview.takeOperation)},
		{8, "userInfo", wireBytes, false, named("userInfo", protobufReview.takeUser)},
		{9, "object", wireBytes, false, named("object", protobufReview.takeNewObject)},
		{10, "oldObject", wireBytes, false, named("oldObject", protobufReview.takeOldObject)},
		{11, "dryRun", wireVarint, false, named("dryRun", protobufReview.takeDryRun)},
		{12, "options", wireBytes, false, named("options", protobufReview.takeOptions)},
		{13, "requestKind", wireBytes, false, named("requestKind", protobufReview.takeRequestKind)},
		{14, "requestResource", wireBytes, false, named("requestResource", protobufReview.takeRequestResource)},
		{15, "requestSubResource", wireBytes, false, into("requestSubResource", func(d *decoder) *[]byte { return &d.review.RequestSubResource })},
	}
	kindMessage = message[protobufReview]{
		{1, "group", wireBytes, false, into("group", func(d *decoder) *[]byte { return &d.group })},
		{2, "version", wireBytes, false, into("version", func(d *decoder) *[]byte { return &d.version })},
		{3, "kind", wireBytes, false, into("kind", func(d *decoder) *[]byte { return &d.kind })},
	}
	resourceMessage = message[protobufReview]{
		{1, "group", wireBytes, false, into("group", func(d *decoder) *[]byte { return &d.group })},
		{2, "version", wireBytes, false, into("version", func(d *decoder) *[]byte { return &d.version })},
		{3, "resource", wireBytes, false, into("resource", func(d *decoder) *[]byte { return &d.resource })},
	}
)

// protobufReview reads a review in Kubernetes' protobuf.
type protobufReview struct{ *decoder }

// read reads the whole review.
func (d protobufReview) read() bool {
	data, ok := bytes.CutPrefix(d.Data, []byte(envelopeMagic))
	if !ok {
		return d.malformed(faultMagic)
	}
	return readMessage(d, data, reviewEnvelope) && d.answerable()
}

// A review in which a field is twice is refused, as one with a duplicate key is;
// one whose fields are of other types is not an AdmissionReview.

func (d protobufReview) noteField(name string, again bool) bool {
	return !again || d.refuse(d.at.member(name), "duplicate field")
}

func (d protobufReview) mistyped(name string) bool {
	return d.refuse(d.at.member(name), "must have another wire type")
}

func (d protobufReview) malformed(fault string) bool {
	return d.refuse(d.at.String(), "not Kubernetes' protobuf: "+fault)
}

// named returns read with the decoder at the field name.
func named(name string, read func(protobufReview, wireValue) bool) func(protobufReview, wireValue) bool {
	return func(d protobufReview, v wireValue) bool {
		d.at.push(name)
		ok := read(d, v)
		d.at.pop()
		return ok
	}
}

// into returns what reads the string dst, a field of that name.
func into(name string, dst func(*decoder) *[]byte) func(protobufReview, wireValue) bool {
	return named(name, func(d protobufReview, v wireValue) bool { return d.takeText(v, dst(d.decoder)) })
}

func (d protobufReview) takeText(v wireValue, dst *[]byte) bool {
	if !utf8.Valid(v.bytes) {
		return d.refuse(d.at.String(), json.FaultUTF8)
	}
	*dst = v.bytes
	return true
}

// takeContent: the content of the envelope is protobuf and nothing else.
func (d protobufReview) takeContent(v wireValue) bool {
	return len(v.bytes) == 0 || string(v.bytes) == MediaTypeProtobuf || d.malformed("it is around something else")
}

func (d protobufReview) takeRequest(v wireValue) bool {
	d.has.request = true
	return readMessage(d, v.bytes, requestMessage)
}

func (d protobufReview) takeKind(v wireValue, dst *GroupVersionKind) bool {
	d.names = names{}
	ok := readMessage(d, v.bytes, kindMessage)
	*dst = GroupVersionKind{d.group, d.version, d.kind}
	return ok
}

func (d protobufReview) takeResource(v wireValue, dst *GroupVersionResource) bool {
	d.names = names{}
	ok := readMessage(d, v.bytes, resourceMessage)
	*dst = GroupVersionResource{d.group, d.version, d.resource}
	return ok
}

func (d protobufReview) takeRequestKind(v wireValue) bool {
	d.has.requestKind = true
	return d.takeKind(v, &d.review.RequestKind)
}

func (d protobufReview) takeRequestResource(v wireValue) bool {
	d.has.requestResource = true
	return d.takeResource(v, &d.review.RequestResource)
}

func (d protobufReview) takeOperation(v wireValue) bool {
	d.review.Operation = parseOperation(v.bytes)
	return d.takeText(v, new([]byte))
}

func (d protobufReview) takeDryRun(v wireValue) bool {
	d.has.dryRun = true
	d.review.DryRun = v.number == 1
	return v.number <= 1 || d.refuse(d.at.String(), "must be true or false")
}

// rawMessage is a runtime.RawExtension.
var rawMessage = message[protobufReview]{
	{1, "raw", wireBytes, false, func(d protobufReview, v wireValue) bool { d.raw = v.bytes; return true }},
}

func (d protobufReview) takeNewObject(v wireValue) bool {
	return d.takeJSON(v, func() bool { return objectReader(d).read(&d.review.Object) })
}

func (d protobufReview) takeOldObject(v wireValue) bool {
	return d.takeJSON(v, func() bool { return objectReader(d).read(&d.review.OldObject) })
}

func (d protobufReview) takeOptions(v wireValue) bool {
	return d.takeJSON(v, jsonReview(d).readOptions)
}

// takeJSON has read read the JSON in a runtime.RawExtension, by the rules for one
// in a JSON review, as deep in it. An empty extension is null.
func (d protobufReview) takeJSON(v wireValue, read func() bool) bool {
	d.raw = nil
	if !readMessage(d, v.bytes, rawMessage) {
		return false
	}
	switch {
	case d.raw == nil:
		return true
	case bytes.HasPrefix(d.raw, []byte(envelopeMagic)):
		if d.request == nil { // JSON webhooks could not get such an object as it is
			d.request = &RequestError{Pointer: d.at.String(), Reason: "must be JSON inside of the protobuf review, not native protobuf"}
		}
		return true
	}
	d.Data, d.Pos, d.Depth = d.raw, 0, reviewDepth
	d.CheckUTF8()
	ok := read() && d.Finish()
	if !ok && d.Fault != "" {
		return d.refuse(d.at.String(), d.SyntaxError())
	}
	return ok
}

var (
	userMessage = message[protobufReview]{
		{1, "username", wireBytes, false, into("username", func(d *decoder) *[]byte { return &d.review.User.Username })},
		{2, "uid", wireBytes, false, into("uid", func(d *decoder) *[]byte { return &d.review.User.UID })},
		{3, "groups", wireBytes, true, named("groups", func(d protobufReview, v wireValue) bool { return d.takeElement(v, &d.review.User.Groups) })},
		{4, "extra", wireBytes, true, named("extra", protobufReview.takeExtra)},
	}
	extraMessage = message[protobufReview]{
		{1, "key", wireBytes, false, into("key", func(d *decoder) *[]byte { return &d.extraKey })},
		{2, "value", wireBytes, false, func(d protobufReview, v wireValue) bool { return readMessage(d, v.bytes, extraValueMessage) }},
	}
	extraValueMessage = message[protobufReview]{
		{1, "items", wireBytes, true, func(d protobufReview, v wireValue) bool { return d.takeElement(v, &d.review.values) }},
	}
)

func (d protobufReview) takeUser(v wireValue) bool {
	if !readMessage(d, v.bytes, userMessage) {
		return false
	}
	base := len(d.keys)
	for i := range d.review.User.Extra {
		d.keys = append(d.keys, d.review.User.Extra[i].Key)
	}
	d.at.push("extra")
	defer d.at.pop()
	return d.uniqueSince(base)
}

// takeExtra takes an entry of userInfo.extra.
func (d protobufReview) takeExtra(v wireValue) bool {
	user, start := &d.review.User, len(d.review.values)
	d.extraKey = nil
	ok := d.count() && readMessage(d, v.bytes, extraMessage)
	values := d.review.values[start:len(d.review.values):len(d.review.values)]
	user.Extra = append(user.Extra, ExtraValue{Key: d.extraKey, Values: values})
	return ok
}

// takeElement appends an element of a list of strings to dst.
func (d protobufReview) takeElement(v wireValue, dst *[][]byte) bool {
	var text []byte
	ok := d.count() && d.takeText(v, &text)
	*dst = append(*dst, text)
	return ok
}
