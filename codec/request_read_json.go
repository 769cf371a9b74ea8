// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
)

var requestFields = table[*decoder]{
	unique: true,
	fields: []field[*decoder]{
		{"uid", (*decoder).readUID, nil},
		{"kind", (*decoder).readOwnKind, nil},
		{"resource", (*decoder).readOwnResource, nil},
		{"subResource", func(d *decoder) bool { return d.readString(&d.review.SubResource) }, nil},
		{"requestKind", (*decoder).readRequestKind, nil},
		{"requestResource", (*decoder).readRequestResource, nil},
		{"requestSubResource", func(d *decoder) bool { return d.readString(&d.review.RequestSubResource) }, nil},
		{"name", func(d *decoder) bool { return d.readString(&d.review.Name) }, nil},
		{"namespace", func(d *decoder) bool { return d.readString(&d.review.Namespace) }, nil},
		{"operation", (*decoder).readOperation, nil},
		{"userInfo", func(d *decoder) bool { return d.readObject(&userFields) }, nil},
		{"object", (*decoder).readNewObject, nil},
		{"oldObject", func(d *decoder) bool { return d.readAdmitted(&d.review.OldObject) }, nil},
		{"dryRun", (*decoder).readDryRun, nil},
		{"options", (*decoder).readOptions, nil},
	},
}

var kindFields = table[*decoder]{
	unique: true,
	fields: []field[*decoder]{
		{"group", func(d *decoder) bool { return d.readString(&d.group) }, nil},
		{"version", func(d *decoder) bool { return d.readString(&d.version) }, nil},
		{"kind", func(d *decoder) bool { return d.readString(&d.kind) }, nil},
	},
}

var resourceFields = table[*decoder]{
	unique: true,
	fields: []field[*decoder]{
		{"group", func(d *decoder) bool { return d.readString(&d.group) }, nil},
		{"version", func(d *decoder) bool { return d.readString(&d.version) }, nil},
		{"resource", func(d *decoder) bool { return d.readString(&d.resource) }, nil},
	},
}

// names are the strings of the kind or resource being read.
type names struct{ group, version, kind, resource []byte }

func (d *decoder) readRequest() bool {
	if d.Next() != '{' {
		return d.refuseValue("must be an object")
	}
	d.has.request = true
	return d.members(&requestFields)
}

func (d *decoder) readKind(dst *GroupVersionKind) bool {
	d.names = names{}
	ok := d.readObject(&kindFields)
	*dst = GroupVersionKind{d.group, d.version, d.kind}
	return ok
}

func (d *decoder) readResource(dst *GroupVersionResource) bool {
	d.names = names{}
	ok := d.readObject(&resourceFields)
	*dst = GroupVersionResource{d.group, d.version, d.resource}
	return ok
}

func (d *decoder) readOwnKind() bool {
	d.Next()
	start := d.Pos
	ok := d.readKind(&d.review.Kind)
	d.kindSpan = span{start, d.Pos}
	return ok
}

func (d *decoder) readOwnResource() bool {
	d.Next()
	start := d.Pos
	ok := d.readResource(&d.review.Resource)
	d.resourceSpan = span{start, d.Pos}
	return ok
}

func (d *decoder) readRequestKind() bool {
	d.has.requestKind = d.Next() == '{'
	if d.repeats(d.kindSpan) {
		d.review.RequestKind = d.review.Kind
		return true
	}
	return d.readKind(&d.review.RequestKind)
}

func (d *decoder) readRequestResource() bool {
	d.has.requestResource = d.Next() == '{'
	if d.repeats(d.resourceSpan) {
		d.review.RequestResource = d.review.Resource
		return true
	}
	return d.readResource(&d.review.RequestResource)
}

// repeats consumes the value at pos if it is written as the object at s: the
// requested kind and resource nearly always are the kind and the resource.
func (d *decoder) repeats(s span) bool {
	n := s.end - s.start
	if n == 0 || d.Data[s.start] != '{' || !bytes.HasPrefix(d.Data[d.Pos:], d.Data[s.start:s.end]) {
		return false
	}
	d.Pos += n
	return true
}

func (d *decoder) readOperation() bool {
	var name []byte
	if !d.readString(&name) {
		return false
	}
	d.review.Operation = parseOperation(name)
	return true
}

// parseOperation returns the operation of that name, or 0.
func parseOperation(name []byte) Operation {
	for o := Create; o <= Connect; o++ {
		if string(name) == o.String() {
			return o
		}
	}
	return 0
}

func (d *decoder) readDryRun() bool {
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

func (d *decoder) readOptions() bool {
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

// complete makes sure that the request says what it is about, and fills in what
// the caller may leave out.
func (d *decoder) complete() {
	r := d.review
	r.has, r.requestSubResource = d.has, r.RequestSubResource
	r.HasRequestResource = d.has.requestKind && d.has.requestResource
	if !d.has.requestKind {
		r.RequestKind = r.Kind
	}
	if !d.has.requestResource {
		r.RequestResource, r.RequestSubResource = r.Resource, r.SubResource
	}
	switch {
	case d.request != nil: // the first RequestError stands
	case r.Operation == 0:
		d.request = &RequestError{Pointer: "/request/operation", Reason: "must be CREATE, UPDATE, DELETE or CONNECT"}
	case len(r.Resource.Resource) == 0:
		d.request = &RequestError{Pointer: "/request/resource", Reason: "required"}
	}
}

var userFields = table[*decoder]{
	unique: true,
	fields: []field[*decoder]{
		{"username", func(d *decoder) bool { return d.readString(&d.review.User.Username) }, nil},
		{"uid", func(d *decoder) bool { return d.readString(&d.review.User.UID) }, nil},
		{"groups", func(d *decoder) bool { return d.readStrings(&d.review.User.Groups) }, nil},
		{"extra", (*decoder).readExtra, nil},
	},
}

// readExtra reads userInfo.extra, a map of arrays of strings. Its keys are data:
// they have no variants, but they must be unique.
func (d *decoder) readExtra() bool {
	switch d.Next() {
	case '{':
	case 'n':
		return d.Skip()
	default:
		return d.reject("must be an object")
	}
	if !d.Enter() {
		return false
	}
	user, base := &d.review.User, len(d.keys)
	first := true
	for ; d.More(first, '}'); first = false {
		key, ok := d.Key()
		if !ok || !d.count() {
			return false
		}
		start := len(d.review.values)
		if !d.readStrings(&d.review.values) {
			return false
		}
		values := d.review.values[start:len(d.review.values):len(d.review.values)]
		user.Extra = append(user.Extra, ExtraValue{Key: key, Values: values})
		d.keys = append(d.keys, key)
	}
	return d.Fault == "" && d.uniqueSince(base)
}
