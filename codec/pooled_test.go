// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// depth bounds how far fillAll follows what values point to.
const depth = 3

// fillAll gives every field of what p points to a value that is not zero, those that are
// not exported included, except for those named, such as "Reader.Data". It goes into
// structs, and into slices, which have one element, and room for another; it does not touch
// what belongs to package sync, and channels, functions and interfaces of which it knows no
// value.
func fillAll(p any, except ...string) { fill(reflect.ValueOf(p).Elem(), "", except, depth) }

func fill(v reflect.Value, path string, except []string, left int) {
	if slices.Contains(except, path) || left == 0 || isSync(v.Type()) {
		return
	}
	v = writable(v)
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(1)
	case reflect.String:
		v.SetString("swordfish")
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), join(path, v.Type().Field(i).Name), except, left)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), path+"[]", except, left)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 2))
		fill(v.Index(0), path+"[]", except, left-1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), path, except, left-1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Interface:
		if err := reflect.ValueOf(errors.New("swordfish")); err.Type().Implements(v.Type()) {
			v.Set(err)
		}
	}
}

// residueOf returns the paths of what is not zero in what p points to, in order, with what
// slices have room for, except for those named in kept. The room itself may stay.
func residueOf(p any, kept ...string) []string {
	var found []string
	residue(reflect.ValueOf(p).Elem(), "", kept, &found)
	slices.Sort(found)
	return slices.Compact(found)
}

func residue(v reflect.Value, path string, kept []string, found *[]string) {
	if slices.Contains(kept, path) || isSync(v.Type()) {
		return
	}
	v = writable(v)
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			residue(v.Field(i), join(path, v.Type().Field(i).Name), kept, found)
		}
	case reflect.Array:
		for i := range v.Len() {
			residue(v.Index(i), path+"[]", kept, found)
		}
	case reflect.Slice:
		if v.Len() > 0 {
			*found = append(*found, path)
		}
		for i, room := 0, v.Slice3(0, v.Cap(), v.Cap()); i < room.Len(); i++ {
			residue(room.Index(i), path+"[]", kept, found)
		}
	default:
		if !v.IsZero() {
			*found = append(*found, path)
		}
	}
}

// isSync reports whether a type is a lock or the like.
func isSync(t reflect.Type) bool { return t.PkgPath() == "sync" }

// writable is v, which is addressable, though its field may not be exported.
func writable(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}

func join(path, name string) string { return strings.TrimPrefix(fmt.Sprint(path, ".", name), ".") }

// What is pooled has nothing of its last use: every field is zero, those too that nobody
// has thought of yet, and so is what slices have room for.
func TestPooledIsEmpty(t *testing.T) {
	check := func(name string, p any, release func(), kept ...string) {
		t.Run(name, func(t *testing.T) {
			fillAll(p)
			if len(residueOf(p, kept...)) < 10 {
				t.Fatalf("only %q are filled", residueOf(p, kept...))
			}
			release()
			if got := residueOf(p, kept...); len(got) > 0 {
				t.Errorf("of its last use there is still %q", got)
			}
		})
	}
	const brackets = "Reader.Scanner.closers[]" // room that the next document overwrites
	a := new(answer)
	check("answer", a, a.release, brackets)
	d := new(decoder)
	check("decoder", d, d.release, brackets)
	r := new(Review)
	check("Review", r, func() {
		r.Body = nil
		r.retained.Store(0)
		ReleaseReview(r)
	}, "retained")
}
