// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/base64"
	"strconv"
)

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
	dst = appendString(dst, uid)
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
	dst = appendString(dst, c.Type)
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
	return appendString(append(dst, key...), value)
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
		dst = appendString(append(dst, open), a.Key)
		dst = appendString(append(dst, ':'), a.Value)
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
		dst = appendString(append(dst, open), w)
		open = ','
	}
	return append(dst, ']')
}
