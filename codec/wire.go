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

// message is what we know of one protobuf message. D is who reads it.
type message[D messageReader] []messageField[D]

// messageField is a field and what reads its value.
type messageField[D any] struct {
	number   uint64 // below 32
	name     string
	wire     wireType
	repeated bool
	read     func(D, wireValue) bool
}

// wireValue is the value of a field: a number, or the bytes of a string, bytes
// or message, which are borrowed and not nil.
type wireValue struct {
	number uint64
	bytes  []byte
}

// messageReader is told of what a strict reader does not accept, and says
// whether to go on.
type messageReader interface {
	// noteField is told of each known field, and whether it is a second one where
	// there must be one.
	noteField(name string, again bool) bool
	// mistyped is told of a known field of another wire type, which is skipped.
	mistyped(name string) bool
	// malformed is told that the message ends too early or is none.
	malformed(fault string) bool
}

// The faults of protobuf, as users see them.
const (
	faultShort     = "unexpected end"
	faultMagic     = "it does not begin with k8s"
	faultTag       = "invalid tag"
	faultVarint    = "invalid number"
	faultGroup     = "groups are not accepted"
	maxFieldNumber = 1<<29 - 1
)

// readMessage reads data: what m knows by its readers, the rest by skipping it.
// It returns false as soon as one of them, or d, does.
func readMessage[D messageReader](d D, data []byte, m message[D]) bool {
	var seen uint32 // a bit per field
	for len(data) > 0 {
		number, wire, value, size, fault := readField(data)
		if fault != "" {
			return d.malformed(fault)
		}
		data = data[size:]
		f := m.find(number)
		if f == nil {
			continue
		}
		again := seen&(1<<number) != 0 && !f.repeated
		seen |= 1 << number
		ok := d.noteField(f.name, again)
		switch {
		case !ok:
		case wire != f.wire:
			ok = d.mistyped(f.name)
		default:
			ok = f.read(d, value)
		}
		if !ok {
			return false
		}
	}
	return true
}

func (m message[D]) find(number uint64) *messageField[D] {
	for i := range m {
		if m[i].number == number {
			return &m[i]
		}
	}
	return nil
}

// readField reads the field at the start of data, which takes size bytes. Groups,
// which Kubernetes does not use and readers disagree about, are refused.
func readField(data []byte) (number uint64, wire wireType, v wireValue, size int, fault string) {
	tag, n := binary.Uvarint(data)
	number, wire = tag>>3, wireType(tag&7)
	if n <= 0 || number == 0 || number > maxFieldNumber {
		return 0, 0, v, 0, faultTag
	}
	v, size, fault = readValue(data[n:], wire)
	return number, wire, v, n + size, fault
}

func readValue(data []byte, wire wireType) (v wireValue, size int, fault string) {
	switch wire {
	case wireVarint:
		if v.number, size = binary.Uvarint(data); size <= 0 {
			return v, 0, faultVarint
		}
		return v, size, ""
	case wireBytes:
		length, n := binary.Uvarint(data)
		if n <= 0 || length > uint64(len(data)-n) {
			return v, 0, faultShort
		}
		size = n + int(length)
		v.bytes = data[n:size:size]
		return v, size, ""
	case wireFixed64:
		size = 8
	case wireFixed32:
		size = 4
	default:
		return v, 0, faultGroup
	}
	if size > len(data) {
		return v, 0, faultShort
	}
	return v, size, ""
}
