// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"slices"
)

// Object is the part of an object that admission itself reads. The bytes are
// borrowed: from the Review for its object and oldObject, from the argument of
// ScanObject otherwise.
type Object struct {
	// Raw is the object's JSON as received; nil when it is null or absent.
	Raw []byte
	// Metadata is the metadata object as it is written; nil if there is none. Options such
	// as PodExecOptions have none and never match a non-empty objectSelector.
	Metadata []byte

	APIVersion, Kind, Name, Namespace, UID []byte
	Labels                                 Labels
}

// HasMetadata reports whether there is a metadata object at all.
func (o *Object) HasMetadata() bool { return o.Metadata != nil }

// IsNull reports whether there is no object.
func (o *Object) IsNull() bool { return o.Raw == nil }

// Label is one label of an object. The bytes are borrowed.
type Label struct{ Key, Value []byte }

// Labels are an object's labels, with unique keys. Above sortedLabels entries
// they are sorted by key.
type Labels []Label

// sortedLabels is the number of labels from which on a lookup searches a sorted
// list: an object with a million labels must not make a selector linear.
const sortedLabels = 16

// Lookup returns the value of the label key. The value is borrowed.
func (l Labels) Lookup(key string) (value []byte, ok bool) {
	if len(l) > sortedLabels {
		i, found := slices.BinarySearchFunc(l, key, func(e Label, k string) int {
			return compareKey(e.Key, k)
		})
		if !found {
			return nil, false
		}
		return l[i].Value, true
	}
	for i := range l {
		if string(l[i].Key) == key {
			return l[i].Value, true
		}
	}
	return nil, false
}

func compareKey(key []byte, k string) int {
	switch {
	case string(key) < k:
		return -1
	case string(key) > k:
		return 1
	}
	return 0
}

// normalize sorts l if it is long and returns the first key that occurs twice,
// or nil.
func (l Labels) normalize() (duplicate []byte) {
	if len(l) <= sortedLabels {
		for i := range l {
			for j := range i {
				if bytes.Equal(l[i].Key, l[j].Key) {
					return l[i].Key
				}
			}
		}
		return nil
	}
	slices.SortFunc(l, func(a, b Label) int { return bytes.Compare(a.Key, b.Key) })
	for i := 1; i < len(l); i++ {
		if bytes.Equal(l[i-1].Key, l[i].Key) {
			return l[i].Key
		}
	}
	return nil
}

// ScanObject fills o with what admission reads of the object raw, strictly as
// Decode does for the objects in a Review. o borrows from raw. It fails with a
// *RequestError.
func ScanObject(o *Object, raw []byte) error {
	*o = Object{Labels: o.Labels[:0]}
	d := acquireDecoder(raw)
	defer d.release()
	d.Depth = reviewDepth
	d.CheckUTF8()
	if (objectReader{d}).read(o) && d.Finish() && d.request == nil {
		return nil
	}
	return d.asRequestError()
}

// CheckJSON makes sure that raw is one JSON value in UTF-8. It fails with a
// *RequestError.
func CheckJSON(raw []byte) error {
	d := acquireDecoder(raw)
	defer d.release()
	d.CheckUTF8()
	if d.Skip() && d.Finish() {
		return nil
	}
	return d.asRequestError()
}

// reviewDepth is how deep an object is in a Review: one that could not be spliced
// into it is not accepted alone.
const reviewDepth = 2

// objectReader reads an object in a review.
type objectReader struct{ *decoder }

var objectFields = table[objectReader]{
	foreign: true,
	fields: []field[objectReader]{
		{"kind", func(d objectReader) bool { return d.readString(&d.object.Kind) }, nil},
		{"apiVersion", func(d objectReader) bool { return d.readString(&d.object.APIVersion) }, nil},
		{"metadata", objectReader.readMetadata, nil},
	},
}

var metadataFields = table[objectReader]{
	unique: true,
	fields: []field[objectReader]{
		{"name", func(d objectReader) bool { return d.readString(&d.object.Name) }, nil},
		{"namespace", func(d objectReader) bool { return d.readString(&d.object.Namespace) }, nil},
		{"uid", func(d objectReader) bool { return d.readString(&d.object.UID) }, nil},
		{"labels", objectReader.readLabels, nil},
	},
}

// read reads one of the objects that admission is about.
func (d objectReader) read(o *Object) bool {
	isObject := d.Next() == '{'
	start := d.Pos
	d.object = o
	if !strictObject(&d.strict, d, &objectFields) {
		return false
	}
	if isObject {
		o.Raw = d.Data[start:d.Pos:d.Pos]
	}
	return true
}

func (d objectReader) readMetadata() bool {
	isObject := d.Next() == '{'
	start, o := d.Pos, d.object
	ok := strictObject(&d.strict, d, &metadataFields)
	if isObject {
		o.Metadata = d.Data[start:d.Pos:d.Pos]
	}
	return ok
}

func (d objectReader) readLabels() bool {
	switch d.Next() {
	case '{':
	case 'n':
		return d.Skip()
	default:
		return d.reject("must be a map of strings")
	}
	labels := d.object.Labels[:0]
	if !d.Enter() {
		return false
	}
	for first := true; d.More(first, '}'); first = false {
		label, ok := d.readLabel()
		if !ok || !d.count() {
			return false
		}
		labels = append(labels, label)
	}
	d.object.Labels = labels
	if d.Fault != "" {
		return false
	}
	if key := labels.normalize(); key != nil {
		return d.duplicate(key)
	}
	return true
}

func (d objectReader) readLabel() (l Label, ok bool) {
	if l.Key, ok = d.Key(); !ok {
		return l, false
	}
	if d.Next() != '"' {
		return l, d.reject("must be a map of strings")
	}
	l.Value, ok = d.Text()
	return l, ok
}
