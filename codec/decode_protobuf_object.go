// SPDX-License-Identifier: Apache-2.0

package codec

import "bytes"

// rawMessage is a runtime.RawExtension.
var rawMessage = message[*decoder]{
	{1, "raw", wireBytes, false, func(d *decoder, v wireValue) bool { d.raw = v.bytes; return true }},
}

func (d *decoder) takeNewObject(v wireValue) bool {
	return d.takeJSON(v, func() bool { return d.readAdmitted(&d.review.Object) })
}

func (d *decoder) takeOldObject(v wireValue) bool {
	return d.takeJSON(v, func() bool { return d.readAdmitted(&d.review.OldObject) })
}

func (d *decoder) takeOptions(v wireValue) bool { return d.takeJSON(v, d.readOptions) }

// takeJSON has read read the JSON in a runtime.RawExtension, by the rules for one
// in a JSON review, as deep in it. An empty extension is null.
func (d *decoder) takeJSON(v wireValue, read func() bool) bool {
	d.raw = nil
	if !readMessage(d, v.bytes, rawMessage) {
		return false
	}
	switch {
	case d.raw == nil:
		return true
	case bytes.HasPrefix(d.raw, []byte(envelopeMagic)):
		d.rejectNative()
		return true
	}
	d.data, d.pos, d.depth = d.raw, 0, reviewDepth
	d.checkUTF8()
	ok := read() && d.finish()
	if !ok && d.fault != "" {
		return d.refuse(d.at.String(), d.syntaxError())
	}
	return ok
}

// rejectNative: JSON webhooks could not get such an object as it is.
func (d *decoder) rejectNative() {
	if d.request == nil {
		d.request = &RequestError{Pointer: d.at.String(), Reason: "must be JSON inside of the protobuf review, not native protobuf"}
	}
}
