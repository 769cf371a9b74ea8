// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"strings"
	"sync"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/codec/json"
)

// objectVariable is one of the objects; true is the old one.
type objectVariable bool

func (o objectVariable) of(v *Variables) *codec.Object {
	if o {
		return &v.Review.OldObject
	}
	return v.Object
}

func (o objectVariable) read(v *Variables) value {
	switch object := o.of(v); {
	case object.IsNull():
		return value{kind: null}
	case object.HasMetadata() || object.Kind != nil:
		return value{kind: filled}
	}
	return value{} // it may be empty
}

// fieldAt returns a field of an object. A key may have dots in it: object['metadata.name'].
func (o objectVariable) fieldAt(path []string) operand {
	switch {
	case len(path) == 0:
		return o
	case len(path) == 2 && path[0] == "metadata":
		return o.metadataAt(path[1])
	case len(path) > 1:
		return nil
	}
	switch path[0] {
	case "kind":
		return function(func(v *Variables) value { return certain(o.of(v).Kind) })
	case "apiVersion":
		return function(func(v *Variables) value { return certain(o.of(v).APIVersion) })
	case "metadata":
		return function(func(v *Variables) value {
			if o.of(v).HasMetadata() {
				return value{kind: container}
			}
			return value{}
		})
	}
	return nil
}

func (o objectVariable) metadataAt(name string) operand {
	field := metadataField{o, name}
	switch name {
	case "labels":
		return labels{field}
	case "annotations":
		return annotations{field}
	case "name":
		return scanned{field, func(o *codec.Object) []byte { return o.Name }}
	case "namespace":
		return scanned{field, func(o *codec.Object) []byte { return o.Namespace }}
	case "uid":
		return scanned{field, func(o *codec.Object) []byte { return o.UID }}
	}
	return field
}

// certain is a string that was scanned; nil if there is none.
func certain(text []byte) value {
	if text == nil {
		return value{}
	}
	return textOf(borrowed(text))
}

// metadataField is a field of the metadata, as it is written.
type metadataField struct {
	object objectVariable
	name   string
}

func (f metadataField) read(v *Variables) value {
	value, _ := f.raw(v)
	return value
}

// raw returns also the field as it is written. No field is in the metadata twice: the
// codec makes sure of that.
func (f metadataField) raw(v *Variables) (value, []byte) {
	object := f.object.of(v)
	if !object.HasMetadata() {
		return value{}, nil
	}
	return v.member(object.Metadata, f.name, true)
}

// scanned is a field that was scanned with the object if it is a string.
type scanned struct {
	metadataField
	text func(*codec.Object) []byte
}

func (s scanned) read(v *Variables) value {
	if found := certain(s.text(s.object.of(v))); found.kind == text {
		return found
	}
	return s.metadataField.read(v)
}

// labels have been scanned with the object.
type labels struct{ metadataField }

func (l labels) read(v *Variables) value {
	if len(l.object.of(v).Labels) > 0 {
		return value{kind: container}
	}
	return l.metadataField.read(v)
}

func (l labels) find(v *Variables, key string) value {
	if label, ok := l.object.of(v).Labels.Lookup(key); ok {
		return textOf(borrowed(label))
	}
	if l.read(v).kind == container {
		return value{kind: absent}
	}
	return value{}
}

func (l labels) count(v *Variables) value {
	if l.read(v).kind == container {
		return numberOf(len(l.object.of(v).Labels))
	}
	return value{}
}

func (labels) cost(*Variables) uint64 { return 1 }

// annotations are scanned each time.
type annotations struct{ metadataField }

func (a annotations) find(v *Variables, key string) value {
	all, raw := a.raw(v)
	if all.kind != container {
		return value{}
	}
	found, _ := v.member(raw, key, false)
	return found
}

func (annotations) count(*Variables) value { return value{} } // a key may be there twice
func (annotations) cost(*Variables) uint64 { return 1 }

// maxScanned is how many bytes predicates scan of one View, about 100 us. Conditions
// that want more are left to CEL, which converts the object once for all.
const maxScanned = 256 << 10

// scanners are pooled, because they weigh 16 KiB.
var scanners = sync.Pool{New: func() any { return new(json.Scanner[[]byte]) }}

func putBack(s *json.Scanner[[]byte]) {
	s.Reset(nil)
	scanners.Put(s)
}

// member returns the value of the member with that key of raw, an object that the codec
// has scanned, and how it is written. It is unknown if a key has escapes, or if the key
// is there twice, for which it is not looked where keys are unique.
func (v *Variables) member(raw []byte, key string, unique bool) (found value, written []byte) {
	if len(raw) > maxScanned-v.scanned {
		return value{}, nil
	}
	s := scanners.Get().(*json.Scanner[[]byte])
	s.Reset(raw)
	defer func() {
		v.scanned += s.Pos
		putBack(s)
	}()
	s.Enter()
	found.kind = absent
	for first := true; s.More(first, '}'); first = false {
		name, escaped, _ := s.Key()
		s.Next()
		start := s.Pos
		switch s.Skip(); {
		case escaped:
			return value{}, nil
		case string(name) != key:
			continue
		case found.kind != absent:
			return value{}, nil
		}
		written = raw[start:s.Pos]
		if found = meant(written); unique {
			break
		}
	}
	return found, written
}

// meant is the value that is written as raw.
func meant(raw []byte) value {
	switch raw[0] {
	case '"':
		if text := borrowed(raw[1 : len(raw)-1]); !strings.Contains(text, `\`) {
			return textOf(text)
		}
		return value{kind: other}
	case 'n':
		return value{kind: null}
	case 't', 'f':
		return boolOf(raw[0] == 't')
	case '{':
		return value{kind: container}
	}
	return value{kind: other}
}
