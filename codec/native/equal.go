// SPDX-License-Identifier: Apache-2.0

package native

import (
	"bytes"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// isEqual reports whether two values of a type of Kubernetes' API are the same to
// whoever reads them. It says what equality.Semantic.DeepEqual says, without its
// bookkeeping for cycles, of which objects have none: that took as long as decoding.
// What it does not know is not equal.
func isEqual(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		return isPointedEqual(a, b)
	case reflect.Struct:
		return isStructEqual(a, b)
	case reflect.Slice:
		return isSliceEqual(a, b)
	case reflect.Map:
		return isMapEqual(a, b)
	case reflect.String:
		return a.String() == b.String()
	case reflect.Bool:
		return a.Bool() == b.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return a.Int() == b.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return a.Uint() == b.Uint()
	case reflect.Float32, reflect.Float64:
		return a.Float() == b.Float()
	}
	return false
}

func isPointedEqual(a, b reflect.Value) bool {
	if a.IsNil() || b.IsNil() {
		return a.IsNil() && b.IsNil()
	}
	a, b = a.Elem(), b.Elem()
	return a.Type() == b.Type() && isEqual(a, b)
}

// The types that are more than their fields.
var (
	decimal   = reflect.TypeFor[resource.Quantity]()
	date      = reflect.TypeFor[metav1.Time]()
	microDate = reflect.TypeFor[metav1.MicroTime]()
	fieldsV1  = reflect.TypeFor[metav1.FieldsV1]()
)

func isStructEqual(a, b reflect.Value) bool {
	switch a.Type() {
	case decimal:
		x, y := of[resource.Quantity](a), of[resource.Quantity](b)
		return x.Cmp(*y) == 0
	case date:
		return of[metav1.Time](a).Time.Equal(of[metav1.Time](b).Time)
	case microDate:
		return of[metav1.MicroTime](a).Time.Equal(of[metav1.MicroTime](b).Time)
	case fieldsV1:
		return of[metav1.FieldsV1](a).Equal(*of[metav1.FieldsV1](b))
	}
	for i := range a.NumField() {
		if !isEqual(a.Field(i), b.Field(i)) {
			return false
		}
	}
	return true
}

// of returns a pointer to the T in v, or to a copy where v has no address, such as
// in a map.
func of[T any](v reflect.Value) *T {
	if v.CanAddr() {
		return v.Addr().Interface().(*T)
	}
	t := v.Interface().(T)
	return &t
}

// An empty list is the same as none.
func isSliceEqual(a, b reflect.Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	if a.Type().Elem().Kind() == reflect.Uint8 {
		return bytes.Equal(a.Bytes(), b.Bytes())
	}
	for i := range a.Len() {
		if !isEqual(a.Index(i), b.Index(i)) {
			return false
		}
	}
	return true
}

// An empty map is the same as none.
func isMapEqual(a, b reflect.Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	for members := a.MapRange(); members.Next(); {
		other := b.MapIndex(members.Key())
		if !other.IsValid() || !isEqual(members.Value(), other) {
			return false
		}
	}
	return true
}
