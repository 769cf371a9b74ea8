// SPDX-License-Identifier: Apache-2.0

package quantity

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
)

// AreDecodable reports whether JSON can be decoded into a value of the type without a
// quantity on which that takes long: some bytes, such as 1e-10000000, take seconds, and an
// object has room for many. It looks closely only where there is such a number, which may be
// a quantity or any other text.
func AreDecodable(text []byte, into reflect.Type) bool {
	if !isSuspect(text) {
		return true
	}
	of := shapeOf(into)
	if of == nil {
		return true
	}
	w := walker{json.NewDecoder(bytes.NewReader(text))}
	w.UseNumber()
	// What is no JSON is not decoded: that is an error without any of this.
	return !errors.Is(w.value(of, 0), errLong)
}

// isSuspect reports whether a number in the text has an exponent of three digits or more, or
// is long.
func isSuspect(text []byte) bool {
	run, exponent := 0, -1 // their length in bytes; -1: there is none
	for _, c := range text {
		switch {
		case '0' <= c && c <= '9':
			if exponent >= 0 {
				exponent++
			}
		case c == 'e', c == 'E':
			exponent = 0
		case c != '+' && c != '-' && c != '.':
			run, exponent = 0, -1
			continue
		}
		if run++; run > maxText || exponent > 2 {
			return true
		}
	}
	return false
}

// shape says where in a type quantities are. nil: nowhere.
type shape struct {
	quantity bool
	fields   map[string]*shape // of an object
	each     *shape            // of a list, or of an object with any fields
}

var (
	shapes      sync.Map // *shape by reflect.Type
	quantity    = reflect.TypeFor[resource.Quantity]()
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
)

func shapeOf(t reflect.Type) *shape {
	if known, ok := shapes.Load(t); ok {
		return known.(*shape) //nolint:forcetypeassert // it is what is stored
	}
	of := describe(t, map[reflect.Type]*shape{})
	shapes.Store(t, of)
	return of
}

// describe returns the shape of a type. under way are types that it is a part of.
func describe(t reflect.Type, underWay map[reflect.Type]*shape) *shape {
	if t == quantity {
		return &shape{quantity: true}
	}
	if of, ok := underWay[t]; ok {
		return of
	}
	switch t.Kind() {
	case reflect.Pointer:
		return describe(t.Elem(), underWay)
	case reflect.Slice, reflect.Array, reflect.Map:
		if of := describe(t.Elem(), underWay); of != nil {
			return &shape{each: of}
		}
	case reflect.Struct:
		of := &shape{fields: map[string]*shape{}}
		underWay[t] = of
		if reflect.PointerTo(t).Implements(unmarshaler) && !embeds(t, quantity) {
			return nil // it has a form of its own
		}
		of.quantity = embeds(t, quantity) // whose UnmarshalJSON it has
		of.addFields(t, underWay)
		if of.quantity || len(of.fields) > 0 {
			return of
		}
	}
	return nil
}

func embeds(t, what reflect.Type) bool {
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && f.Type == what {
			return true
		}
	}
	return false
}

// addFields adds the fields of a struct in which quantities are.
func (s *shape) addFields(t reflect.Type, underWay map[reflect.Type]*shape) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		of := describe(f.Type, underWay)
		switch {
		case of == nil:
		case f.Anonymous && name == "":
			for name, field := range of.fields {
				s.fields[name] = field
			}
		case name == "":
			s.fields[f.Name] = of
		default:
			s.fields[name] = of
		}
	}
}

// walker reads JSON value by value.
type walker struct{ *json.Decoder }

var errLong = errors.New("a quantity takes long to decode")

// maxDepth is how deep decoders go.
const maxDepth = 10_000

// value reads the next value, in which quantities are where the shape says.
func (w walker) value(of *shape, depth int) error {
	token, err := w.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case json.Delim:
		if of == nil || depth > maxDepth {
			return w.skip()
		}
		return w.composed(of, token == '{', depth)
	case json.Number:
		return of.check(token.String())
	case string:
		return of.check(token)
	}
	return nil
}

func (s *shape) check(text string) error {
	if s != nil && s.quantity && !isDecodable(text) {
		return errLong
	}
	return nil
}

// composed reads the rest of an object or a list.
func (w walker) composed(of *shape, object bool, depth int) error {
	for w.More() {
		each := of.each
		if object {
			key, err := w.Token()
			if err != nil {
				return err
			}
			if name, _ := key.(string); each == nil {
				each = of.fields[name]
			}
		}
		if err := w.value(each, depth+1); err != nil {
			return err
		}
	}
	_, err := w.Token()
	return err
}

// skip reads the rest of an object or a list in which no quantities are.
func (w walker) skip() error {
	for depth := 1; depth > 0; {
		token, err := w.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return nil
}
