// SPDX-License-Identifier: Apache-2.0

// Package pooled checks that what is used again has nothing of its last use.
package pooled

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// Check gives every field of what p points to a value, those too that nobody has thought
// of yet, has it released, and fails if anything is left of that, but for the paths in
// kept, such as "Reader.Data". What a slice has room for counts, the room does not. A
// field that is an interface with methods that are not exported is filled by the caller.
func Check(t *testing.T, p any, release func(), kept ...string) {
	t.Helper()
	if empty := fill(p, kept); len(empty) > 0 {
		t.Fatalf("no value is known for %q", empty)
	}
	release()
	if left := residue(p, kept); len(left) > 0 {
		t.Errorf("of its last use there is still %q", left)
	}
}

// fill gives what p points to, and what that is made of, values that are not zero, also
// where they are not exported. Slices have one element, and room for another. What belongs
// to package sync is not touched, nor is an interface that has a value. It returns the paths
// of what p itself has for which it knows none.
func fill(p any, kept []string) (empty []string) {
	var into func(v reflect.Value, path string, depth int, own bool)
	into = func(v reflect.Value, path string, depth int, own bool) {
		if slices.Contains(kept, path) || depth > 2 || isSync(v.Type()) {
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
		case reflect.Float32, reflect.Float64:
			v.SetFloat(1)
		case reflect.String:
			v.SetString("swordfish")
		case reflect.Struct:
			for i := range v.NumField() {
				into(v.Field(i), join(path, v.Type().Field(i).Name), depth, own)
			}
		case reflect.Array:
			for i := range v.Len() {
				into(v.Index(i), path+"[]", depth, own)
			}
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 2))
			into(v.Index(0), path+"[]", depth+1, own)
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			into(v.Elem(), path, depth+1, false)
		case reflect.Map:
			v.Set(reflect.MakeMap(v.Type()))
		case reflect.Chan:
			v.Set(reflect.MakeChan(reflect.ChanOf(reflect.BothDir, v.Type().Elem()), 1))
		case reflect.Func:
			if own {
				v.Set(reflect.MakeFunc(v.Type(), func([]reflect.Value) []reflect.Value { panic("swordfish") }))
			}
		case reflect.Interface:
			if !own || !v.IsNil() {
				return
			}
			if known := implementation(v.Type()); known.IsValid() {
				v.Set(known)
			} else {
				empty = append(empty, path)
			}
		}
	}
	into(reflect.ValueOf(p).Elem(), "", 0, true)
	return empty
}

// implementation returns a value of an interface; none if that has methods that are not
// exported.
func implementation(t reflect.Type) (v reflect.Value) {
	for i := range t.NumMethod() {
		if !t.Method(i).IsExported() {
			return v
		}
	}
	if t.NumMethod() == 0 {
		return reflect.ValueOf("swordfish")
	}
	return reflect.Zero(reflect.StructOf([]reflect.StructField{{Name: "Interface", Type: t, Anonymous: true}}))
}

// residue returns the paths of what is not zero in what p points to, in order.
func residue(p any, kept []string) (found []string) {
	var look func(v reflect.Value, path string)
	look = func(v reflect.Value, path string) {
		if slices.Contains(kept, path) || isSync(v.Type()) {
			return
		}
		v = writable(v)
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				look(v.Field(i), join(path, v.Type().Field(i).Name))
			}
		case reflect.Array:
			for i := range v.Len() {
				look(v.Index(i), path+"[]")
			}
		case reflect.Slice:
			if v.Len() > 0 {
				found = append(found, path)
			}
			for i, room := 0, v.Slice3(0, v.Cap(), v.Cap()); i < room.Len(); i++ {
				look(room.Index(i), path+"[]")
			}
		default:
			if !v.IsZero() {
				found = append(found, path)
			}
		}
	}
	look(reflect.ValueOf(p).Elem(), "")
	slices.Sort(found)
	return slices.Compact(found)
}

// isSync reports whether a type is a lock or the like.
func isSync(t reflect.Type) bool { return t.PkgPath() == "sync" }

// writable is v, which is addressable, though its field may not be exported.
func writable(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }
