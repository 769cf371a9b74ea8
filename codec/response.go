// SPDX-License-Identifier: Apache-2.0

package codec

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
