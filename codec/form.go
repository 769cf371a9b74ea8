// SPDX-License-Identifier: Apache-2.0

package codec

// Encoding is how a Review or an answer is written on the wire.
type Encoding uint8

const (
	// JSON is application/json, what every webhook reads.
	JSON Encoding = iota
	// Protobuf is Kubernetes' protobuf around an AdmissionReview whose objects
	// are the JSON that was received.
	Protobuf
	// ProtobufNative is Protobuf with objects of built-in kinds as protobuf too.
	ProtobufNative
)

var encodings = [...]string{JSON: "JSON", Protobuf: "Protobuf", ProtobufNative: "ProtobufNative"}

// String returns the encoding as configurations spell it.
func (e Encoding) String() string { return encodings[e] }

// The media types of a Review and of an answer.
const (
	MediaTypeJSON     = "application/json"
	MediaTypeProtobuf = "application/vnd.kubernetes.protobuf"
)

// ContentType returns the media type of the encoding.
func (e Encoding) ContentType() string {
	if e == JSON {
		return MediaTypeJSON
	}
	return MediaTypeProtobuf
}

// Coding is a content coding (RFC 9110, 8.4) of a body.
type Coding uint8

// The codings that we speak.
const (
	Identity Coding = iota
	Gzip
	Zstd
)

// String returns the coding as Content-Encoding spells it, and "" for Identity,
// which has no header.
func (c Coding) String() string {
	switch c {
	case Gzip:
		return "gzip"
	case Zstd:
		return "zstd"
	default:
		return ""
	}
}

// Form is everything that changes the bytes of a Review on its way to a webhook,
// apart from the object in it.
type Form struct {
	Version  Version
	Encoding Encoding
	Coding   Coding
}

// ContentType returns the media type to send the form as.
func (f Form) ContentType() string { return f.Encoding.ContentType() }
