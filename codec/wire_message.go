// SPDX-License-Identifier: Apache-2.0

package codec

import "encoding/binary"

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
