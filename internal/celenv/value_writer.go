// SPDX-License-Identifier: Apache-2.0

package celenv

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	codecjson "github.com/admission-dispatcher/dispatcher/codec/json"
)

// valueWriter writes values of CEL as JSON, the way structpb has them, as kube-apiserver
// does. A list may be in another many times, so that a few variables stand for more than
// any memory holds: what is written has a limit, and the clock is looked at.
type valueWriter struct {
	out        []byte
	limit      int       // of out, in bytes
	deadline   time.Time // zero: none
	unwatched  int       // values since somebody looked at the clock
	mismatches []string  // objects whose type is not called as the field that they are in
}

// place is where a value is.
type place struct {
	inObject bool   // kube-apiserver has what is in an Object as plain data
	expected string // the name of the type of an object here; "": any
	depth    int
}

// errTooLarge is what a mutation fails with that makes more than anybody would apply.
var errTooLarge = errors.New("the expression evaluated to more than a patch may have")

var errNotUTF8 = errors.New("a string is not valid UTF-8")

// maxSafe is the largest whole number that a float64 stands for together with all smaller
// ones.
const maxSafe = 1<<53 - 1

// usualValues is how many values are written between two looks at the clock.
const usualValues = 1000

// check fails if too much is written, or too late.
func (w *valueWriter) check(values int) error {
	if len(w.out) > w.limit {
		return errTooLarge
	}
	if w.unwatched += values; w.unwatched < usualValues || w.deadline.IsZero() {
		return nil
	}
	w.unwatched = 0
	if !time.Now().Before(w.deadline) {
		return ErrInterrupted
	}
	return nil
}

func (w *valueWriter) text(s string) { w.out = codecjson.AppendString(w.out, s) }

func (w *valueWriter) member(before byte, name string) {
	w.out = append(w.out, before)
	w.text(name)
	w.out = append(w.out, ':')
}

func (w *valueWriter) value(v ref.Val, at place) error {
	if err := w.check(1); err != nil {
		return err
	}
	if at.depth++; at.depth > codecjson.MaxDepth {
		return errTooLarge
	}
	switch v := v.(type) {
	case *objectValue:
		return w.object(v, at)
	case types.String:
		if !utf8.ValidString(string(v)) {
			return errNotUTF8
		}
		w.text(string(v))
	case types.Int:
		w.number(strconv.FormatInt(int64(v), 10), at.inObject || -maxSafe <= v && v <= maxSafe)
	case types.Uint:
		w.number(strconv.FormatUint(uint64(v), 10), at.inObject || v <= maxSafe)
	case types.Bool:
		w.out = strconv.AppendBool(w.out, bool(v))
	case types.Null:
		w.out = append(w.out, "null"...)
	case types.Bytes:
		w.text(base64.StdEncoding.EncodeToString(v))
	case variablesValue:
		_, err := v.ConvertToNative(reflect.TypeFor[any]())
		return err
	case traits.Mapper:
		return w.members(v, at)
	case traits.Lister:
		return w.elements(v, at)
	default:
		return w.other(v)
	}
	return nil
}

// number writes a number, or as a string what is not safe as one.
func (w *valueWriter) number(digits string, safe bool) {
	if safe {
		w.out = append(w.out, digits...)
	} else {
		w.text(digits)
	}
}

func (w *valueWriter) object(v *objectValue, at place) error {
	if name := v.Type().TypeName(); at.expected != "" && name != at.expected {
		w.mismatches = append(w.mismatches, fmt.Sprintf("unexpected type name %q, expected %q, which matches field name path from root Object type", name, at.expected))
	}
	before := byte('{')
	for _, name := range slices.Sorted(maps.Keys(v.fields)) {
		w.member(before, name)
		before = ','
		inside := place{inObject: true, depth: at.depth}
		if at.expected != "" {
			inside.expected = at.expected + "." + name
		}
		if err := w.value(v.fields[name], inside); err != nil {
			return err
		}
	}
	w.end(before, '{', '}')
	return nil
}

// end closes what has been opened, or nothing has been written into.
func (w *valueWriter) end(before, open, closed byte) {
	if before == open {
		w.out = append(w.out, open)
	}
	w.out = append(w.out, closed)
}

func (w *valueWriter) members(m traits.Mapper, at place) error {
	if _, literal := m.Value().(map[ref.Val]ref.Val); !literal {
		at.expected = "" // kube-apiserver does not look into others
	}
	values := map[string]ref.Val{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return notText(key)
		}
		values[string(name)] = m.Get(key)
		if err := w.check(1); err != nil {
			return err
		}
	}
	before := byte('{')
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !utf8.ValidString(name) {
			return errNotUTF8
		}
		w.member(before, name)
		before = ','
		if err := w.value(values[name], at); err != nil {
			return err
		}
	}
	w.end(before, '{', '}')
	return nil
}

// notText is the error of a key that is no string, in CEL's words.
func notText(key ref.Val) error {
	_, err := key.ConvertToNative(reflect.TypeFor[string]())
	if err == nil {
		err = fmt.Errorf("a map key is of type %s, not string", key.Type().TypeName())
	}
	return err
}

func (w *valueWriter) elements(l traits.Lister, at place) error {
	if _, literal := l.Value().([]ref.Val); !literal {
		at.expected = ""
	}
	before := byte('[')
	for it := l.Iterator(); it.HasNext() == types.True; before = ',' {
		w.out = append(w.out, before)
		if err := w.value(it.Next(), at); err != nil {
			return err
		}
	}
	w.end(before, '[', ']')
	return nil
}

// other writes what has no parts. Its errors quote nothing of the object.
func (w *valueWriter) other(v ref.Val) error {
	if types.IsUnknownOrError(v) {
		return errors.New("a part of the value has no result")
	}
	native, err := v.ConvertToNative(types.JSONValueType)
	if err != nil {
		return err
	}
	text, err := json.Marshal(native)
	if err != nil {
		return fmt.Errorf("a value of type %s has no JSON", v.Type().TypeName())
	}
	w.out = append(w.out, text...)
	return nil
}
