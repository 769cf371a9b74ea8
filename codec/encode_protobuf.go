// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/binary"
	"unicode/utf8"
)

// AppendAnswer appends the AdmissionReview that answers r with resp to dst, in
// the version and the encoding of r.
func (r *Review) AppendAnswer(dst []byte, resp *Response) []byte {
	if r.Encoding == JSON {
		return AppendAnswer(dst, r.Version, r.UID, resp)
	}
	return AppendProtobufAnswer(dst, r.Version, r.UID, resp)
}

// AppendProtobufAnswer is AppendAnswer in Kubernetes' protobuf.
func AppendProtobufAnswer(dst []byte, v Version, uid []byte, resp *Response) []byte {
	dst = append(dst, envelopeMagic...)
	dst = appendMessage(dst, 1, func(dst []byte) []byte {
		return appendText(appendText(dst, 1, v.APIVersion()), 2, reviewKind)
	})
	dst = appendMessage(dst, 2, func(dst []byte) []byte {
		return appendMessage(dst, 2, func(dst []byte) []byte { return appendResponse(dst, uid, resp) })
	})
	return append(dst, envelopeTail...)
}

// appendResponse appends the content of an AdmissionResponse.
func appendResponse(dst, uid []byte, resp *Response) []byte {
	dst = appendText(dst, 1, uid)
	dst = appendBool(dst, 2, resp.Allowed)
	if !resp.Allowed {
		dst = appendMessage(dst, 3, func(dst []byte) []byte { return appendStatusFields(dst, resp) })
	}
	if len(resp.Patch) > 0 {
		dst = appendText(dst, 4, resp.Patch)
		dst = appendText(dst, 5, "JSONPatch")
	}
	for i := range resp.Annotations {
		a := &resp.Annotations[i]
		dst = appendMessage(dst, 6, func(dst []byte) []byte { return appendValid(appendValid(dst, 1, a.Key), 2, a.Value) })
	}
	for _, w := range resp.Warnings {
		dst = appendValid(dst, 7, w)
	}
	return dst
}

// appendStatusFields appends the content of the metav1.Status of a denial.
func appendStatusFields(dst []byte, resp *Response) []byte {
	dst = appendText(dst, 2, "Failure")
	dst = appendValid(dst, 3, resp.Message)
	dst = appendValid(dst, 4, resp.Reason)
	if len(resp.Causes) > 0 || resp.RetryAfterSeconds != 0 {
		dst = appendMessage(dst, 5, func(dst []byte) []byte { return appendDetailsFields(dst, resp) })
	}
	return appendInt(dst, 6, resp.Code)
}

// appendDetailsFields appends the content of a metav1.StatusDetails.
func appendDetailsFields(dst []byte, resp *Response) []byte {
	for i := range resp.Causes {
		c := &resp.Causes[i]
		dst = appendMessage(dst, 4, func(dst []byte) []byte {
			return appendValid(appendValid(appendValid(dst, 1, c.Type), 2, c.Message), 3, c.Field)
		})
	}
	return appendInt(dst, 5, resp.RetryAfterSeconds)
}

// appendMessage appends a field that is a message, whose content is what content
// appends.
func appendMessage(dst []byte, number uint8, content func([]byte) []byte) []byte {
	dst = openMessage(dst, number)
	start := len(dst)
	return closeMessage(content(dst), start)
}

// appendValid appends a field that is a string. What is not UTF-8 in it becomes
// U+FFFD, byte by byte, as in JSON.
func appendValid(dst []byte, number uint8, text string) []byte {
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	return appendText(dst, number, text)
}

func appendInt(dst []byte, number uint8, n int32) []byte {
	return binary.AppendUvarint(appendTag(dst, number, wireVarint), uint64(int64(n)))
}
