// SPDX-License-Identifier: Apache-2.0

package codec

var (
	userMessage = message[*decoder]{
		{1, "username", wireBytes, false, into("username", func(d *decoder) *[]byte { return &d.review.User.Username })},
		{2, "uid", wireBytes, false, into("uid", func(d *decoder) *[]byte { return &d.review.User.UID })},
		{3, "groups", wireBytes, true, named("groups", func(d *decoder, v wireValue) bool { return d.takeElement(v, &d.review.User.Groups) })},
		{4, "extra", wireBytes, true, named("extra", (*decoder).takeExtra)},
	}
	extraMessage = message[*decoder]{
		{1, "key", wireBytes, false, into("key", func(d *decoder) *[]byte { return &d.extraKey })},
		{2, "value", wireBytes, false, func(d *decoder, v wireValue) bool { return readMessage(d, v.bytes, extraValueMessage) }},
	}
	extraValueMessage = message[*decoder]{
		{1, "items", wireBytes, true, func(d *decoder, v wireValue) bool { return d.takeElement(v, &d.review.values) }},
	}
)

func (d *decoder) takeUser(v wireValue) bool {
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
func (d *decoder) takeExtra(v wireValue) bool {
	user, start := &d.review.User, len(d.review.values)
	d.extraKey = nil
	ok := d.count() && readMessage(d, v.bytes, extraMessage)
	values := d.review.values[start:len(d.review.values):len(d.review.values)]
	user.Extra = append(user.Extra, ExtraValue{Key: d.extraKey, Values: values})
	return ok
}

// takeElement appends an element of a list of strings to dst.
func (d *decoder) takeElement(v wireValue, dst *[][]byte) bool {
	var text []byte
	ok := d.count() && d.takeText(v, &text)
	*dst = append(*dst, text)
	return ok
}
