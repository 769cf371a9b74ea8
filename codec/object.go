// SPDX-License-Identifier: Apache-2.0

package codec

var objectFields = table[*decoder]{
	foreign: true,
	fields: []field[*decoder]{
		{"kind", func(d *decoder) bool { return d.readString(&d.object.Kind) }},
		{"apiVersion", func(d *decoder) bool { return d.readString(&d.object.APIVersion) }},
		{"metadata", (*decoder).readMetadata},
	},
}

var metadataFields = table[*decoder]{
	unique: true,
	fields: []field[*decoder]{
		{"name", func(d *decoder) bool { return d.readString(&d.object.Name) }},
		{"namespace", func(d *decoder) bool { return d.readString(&d.object.Namespace) }},
		{"uid", func(d *decoder) bool { return d.readString(&d.object.UID) }},
		{"labels", (*decoder).readLabels},
	},
}

func (d *decoder) readNewObject() bool {
	d.next()
	start := d.pos
	ok := d.readAdmitted(&d.review.Object)
	d.review.objectSpan = span{start, d.pos}
	return ok
}

// readAdmitted reads one of the objects that admission is about.
func (d *decoder) readAdmitted(o *Object) bool {
	isObject := d.next() == '{'
	start := d.pos
	d.object = o
	if !d.readObject(&objectFields) {
		return false
	}
	if isObject {
		o.Raw = d.data[start:d.pos:d.pos]
	}
	return true
}

func (d *decoder) readMetadata() bool {
	d.object.HasMetadata = d.next() == '{'
	return d.readObject(&metadataFields)
}

func (d *decoder) readLabels() bool {
	switch d.next() {
	case '{':
	case 'n':
		return d.skip()
	default:
		return d.reject("must be a map of strings")
	}
	if !d.enter() {
		return false
	}
	labels := d.object.Labels[:0]
	first := true
	for ; d.more(first, '}'); first = false {
		label, ok := d.readLabel()
		if !ok || !d.count() {
			return false
		}
		labels = append(labels, label)
	}
	d.object.Labels = labels
	if d.fault != "" {
		return false
	}
	if key := labels.normalize(); key != nil {
		return d.duplicate(key)
	}
	return true
}

func (d *decoder) readLabel() (l Label, ok bool) {
	if l.Key, ok = d.key(); !ok {
		return l, false
	}
	if d.next() != '"' {
		return l, d.reject("must be a map of strings")
	}
	l.Value, ok = d.text()
	return l, ok
}
