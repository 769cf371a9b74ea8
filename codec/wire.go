// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/binary"
	"math/bits"
)

// The envelope of Kubernetes' protobuf: four bytes, then a runtime.Unknown that
// says what is in it (k8s.io/apimachinery/pkg/runtime/generated.proto).
const (
	envelopeMagic = "k8s\x00"
	// envelopeTail are contentEncoding and contentType, both empty.
	envelopeTail = "\x1a\x00\x22\x00"
)

// wireType is how a field of a protobuf message is written.
type wireType uint8

const (
	wireVarint  wireType = 0
	wireFixed64 wireType = 1
	wireBytes   wireType = 2
	wireFixed32 wireType = 5
)

// appendTag appends the tag of a field, whose number is below 16.
func appendTag(dst []byte, number uint8, t wireType) []byte {
	return append(dst, number<<3|byte(t))
}

// appendHead appends what stands before the size bytes of a field that is a
// string, bytes or a message.
func appendHead(dst []byte, number uint8, size int) []byte {
	if size < oneByte {
		return append(dst, number<<3|byte(wireBytes), byte(size))
	}
	return binary.AppendUvarint(appendTag(dst, number, wireBytes), uint64(size))
}

// openMessage appends what stands before a message of unknown size; its content is
// appended next, then closeMessage is called. Most lengths take one byte, for which
// it leaves room.
func openMessage(dst []byte, number uint8) []byte {
	return append(dst, number<<3|byte(wireBytes), 0)
}

// closeMessage writes the length of the message whose content begins at start. It
// moves the content if the length takes more than a byte.
func closeMessage(dst []byte, start int) []byte {
	size := len(dst) - start
	if size < oneByte {
		dst[start-1] = byte(size)
		return dst
	}
	more := uvarintSize(uint64(size)) - 1
	dst = append(dst, dst[len(dst)-more:]...)
	copy(dst[start+more:], dst[start:start+size])
	binary.PutUvarint(dst[start-1:], uint64(size))
	return dst
}

// appendText appends a field that is a string or bytes. The messages of
// Kubernetes carry empty ones too.
func appendText[S string | []byte](dst []byte, number uint8, text S) []byte {
	return append(appendHead(dst, number, len(text)), text...)
}

// appendBool appends a field that is a bool.
func appendBool(dst []byte, number uint8, b bool) []byte {
	dst = appendTag(dst, number, wireVarint)
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// fieldSize returns how many bytes a field below 16 takes, whose content has size
// bytes.
func fieldSize(size int) int { return 1 + uvarintSize(uint64(size)) + size }

// boolSize is how many bytes a bool takes.
const boolSize = 2

func uvarintSize(v uint64) int {
	if v < oneByte {
		return 1
	}
	return (bits.Len64(v) + 6) / 7
}

// oneByte is above all numbers that take one byte: the length of most names.
const oneByte = 0x80

// appendEnvelopeHead appends what stands before the size bytes of an
// AdmissionReview of version v; envelopeTail stands behind them.
func appendEnvelopeHead(dst []byte, v Version, size int) []byte {
	apiVersion := v.APIVersion()
	dst = append(dst, envelopeMagic...)
	dst = appendHead(dst, 1, fieldSize(len(apiVersion))+fieldSize(len(reviewKind)))
	dst = appendText(dst, 1, apiVersion)
	dst = appendText(dst, 2, reviewKind)
	return appendHead(dst, 2, size)
}

const reviewKind = "AdmissionReview"

// maxEnvelopeSize bounds what an envelope adds to its content.
const maxEnvelopeSize = 96
