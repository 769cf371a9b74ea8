// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"unicode/utf8"

	"github.com/admission-dispatcher/dispatcher/codec/json"
)

// Response is an AdmissionResponse without its envelope: what one webhook
// answered (Verify) or the merged answer for the caller (AppendAnswer). All of
// it is owned by the Response, nothing is borrowed.
type Response struct {
	Allowed bool

	// Code, Reason, Message, Causes and RetryAfterSeconds are the status of a
	// denial; on an allow they are zero.
	Code              int32
	Reason            string
	Message           string
	Causes            []Cause
	RetryAfterSeconds int32

	// Patch is a JSON array of RFC 6902 operations, not base64; nil is none.
	Patch []byte

	Warnings    []string
	Annotations []Annotation

	// DroppedAnnotations counts what Verify left out for a bad key or a limit.
	DroppedAnnotations int
}

// Cause is one entry of status.details.causes.
type Cause struct{ Type, Field, Message string }

// Annotation is one audit annotation.
type Annotation struct{ Key, Value string }

// The frozen parts of an answer; the uid stands between head and verdict.
const (
	headV1      = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":`
	headV1beta1 = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","response":{"uid":`
	plainAllow  = `,"allowed":true}}`
)

// AppendAnswer appends the AdmissionReview of version v that answers uid with
// resp to dst.
func AppendAnswer(dst []byte, v Version, uid []byte, resp *Response) []byte {
	if v == V1beta1 {
		dst = append(dst, headV1beta1...)
	} else {
		dst = append(dst, headV1...)
	}
	dst = json.AppendString(dst, uid)
	if resp.isPlainAllow() {
		return append(dst, plainAllow...)
	}
	dst = append(dst, `,"allowed":`...)
	dst = strconv.AppendBool(dst, resp.Allowed)
	if !resp.Allowed {
		dst = appendStatus(dst, resp)
	}
	dst = appendPatch(dst, resp.Patch)
	dst = appendAnnotations(dst, resp.Annotations)
	dst = appendWarnings(dst, resp.Warnings)
	return append(dst, "}}"...)
}

// isPlainAllow reports whether there is nothing to say but yes.
func (r *Response) isPlainAllow() bool {
	return r.Allowed && len(r.Patch) == 0 && len(r.Warnings) == 0 && len(r.Annotations) == 0
}

// appendStatus appends the metav1.Status of a denial.
func appendStatus(dst []byte, resp *Response) []byte {
	dst = append(dst, `,"status":{"metadata":{},"status":"Failure"`...)
	dst = appendMember(dst, `,"message":`, resp.Message)
	dst = appendMember(dst, `,"reason":`, resp.Reason)
	dst = appendDetails(dst, resp)
	if resp.Code != 0 {
		dst = append(dst, `,"code":`...)
		dst = strconv.AppendInt(dst, int64(resp.Code), 10)
	}
	return append(dst, '}')
}

func appendDetails(dst []byte, resp *Response) []byte {
	hasCauses, hasRetry := len(resp.Causes) > 0, resp.RetryAfterSeconds != 0
	if !hasCauses && !hasRetry {
		return dst
	}
	dst = append(dst, `,"details":{`...)
	if hasCauses {
		dst = appendCauses(dst, resp.Causes)
	}
	if hasCauses && hasRetry {
		dst = append(dst, ',')
	}
	if hasRetry {
		dst = append(dst, `"retryAfterSeconds":`...)
		dst = strconv.AppendInt(dst, int64(resp.RetryAfterSeconds), 10)
	}
	return append(dst, '}')
}

func appendCauses(dst []byte, causes []Cause) []byte {
	dst = append(dst, `"causes":`...)
	open := byte('[')
	for i := range causes {
		dst = appendCause(append(dst, open), &causes[i])
		open = ','
	}
	return append(dst, ']')
}

func appendCause(dst []byte, c *Cause) []byte {
	dst = append(dst, `{"reason":`...)
	dst = json.AppendString(dst, c.Type)
	dst = appendMember(dst, `,"message":`, c.Message)
	dst = appendMember(dst, `,"field":`, c.Field)
	return append(dst, '}')
}

// appendMember appends key, which brings its comma and colon, and the string
// value; nothing where value is empty.
func appendMember(dst []byte, key, value string) []byte {
	if value == "" {
		return dst
	}
	return json.AppendString(append(dst, key...), value)
}

func appendPatch(dst, patch []byte) []byte {
	if len(patch) == 0 {
		return dst
	}
	dst = append(dst, `,"patch":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, patch)
	return append(dst, `","patchType":"JSONPatch"`...)
}

func appendAnnotations(dst []byte, annotations []Annotation) []byte {
	if len(annotations) == 0 {
		return dst
	}
	dst = append(dst, `,"auditAnnotations":`...)
	open := byte('{')
	for _, a := range annotations {
		dst = json.AppendString(append(dst, open), a.Key)
		dst = json.AppendString(append(dst, ':'), a.Value)
		open = ','
	}
	return append(dst, '}')
}

func appendWarnings(dst []byte, warnings []string) []byte {
	if len(warnings) == 0 {
		return dst
	}
	dst = append(dst, `,"warnings":`...)
	open := byte('[')
	for _, w := range warnings {
		dst = json.AppendString(append(dst, open), w)
		open = ','
	}
	return append(dst, ']')
}

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
