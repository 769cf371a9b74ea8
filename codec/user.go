// SPDX-License-Identifier: Apache-2.0

package codec

var userFields = table[*decoder]{
	unique: true,
	fields: []field[*decoder]{
		{"username", func(d *decoder) bool { return d.readString(&d.review.User.Username) }},
		{"uid", func(d *decoder) bool { return d.readString(&d.review.User.UID) }},
		{"groups", func(d *decoder) bool { return d.readStrings(&d.review.User.Groups) }},
		{"extra", (*decoder).readExtra},
	},
}

// readExtra reads userInfo.extra, a map of arrays of strings. Its keys are data:
// they have no variants, but they must be unique.
func (d *decoder) readExtra() bool {
	switch d.next() {
	case '{':
	case 'n':
		return d.skip()
	default:
		return d.reject("must be an object")
	}
	if !d.enter() {
		return false
	}
	user, base := &d.review.User, len(d.keys)
	first := true
	for ; d.more(first, '}'); first = false {
		key, ok := d.key()
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
	return d.fault == "" && d.uniqueSince(base)
}
