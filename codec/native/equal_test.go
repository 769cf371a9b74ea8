// SPDX-License-Identifier: Apache-2.0

package native

import (
	"math/rand"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// TestIsEqual: random objects of every kind, and the same with one value changed,
// are equal where Kubernetes says so.
func TestIsEqual(t *testing.T) {
	scheme, random := builtIn(), rand.New(rand.NewSource(2))
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, random, serializer.NewCodecFactory(scheme))
	changed, noticed := 0, 0
	for gvk := range scheme.AllKnownTypes() {
		for range 10 {
			a, err := scheme.New(gvk)
			if err != nil {
				t.Fatal(err)
			}
			fill.Fill(a)
			b := a.DeepCopyObject()
			agree(t, a, b)
			for range 5 {
				values := slices.DeleteFunc(leaves(reflect.ValueOf(b), nil), func(v reflect.Value) bool { return !v.CanSet() })
				if len(values) == 0 {
					break
				}
				change(values[random.Intn(len(values))])
				changed++
				if !agree(t, a, b) {
					noticed++
				}
				b = a.DeepCopyObject()
			}
		}
	}
	if noticed == 0 || changed < 5_000 {
		t.Errorf("%d of %d changes noticed: the test shows nothing", noticed, changed)
	}
}

func agree(t *testing.T, a, b runtime.Object) bool {
	t.Helper()
	got, want := isEqual(reflect.ValueOf(&a).Elem(), reflect.ValueOf(&b).Elem()), equality.Semantic.DeepEqual(a, b)
	if got != want {
		t.Fatalf("got %v, want %v of\n%#v\n%#v", got, want, a, b)
	}
	return got
}

// leaves appends what stands at the ends of v.
func leaves(v reflect.Value, list []reflect.Value) []reflect.Value {
	switch v.Type() {
	case decimal, date, microDate:
		return append(list, v)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			list = leaves(v.Elem(), list)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			list = leaves(v.Field(i), list)
		}
	case reflect.Slice:
		list = append(list, v)
		for i := range v.Len() {
			list = leaves(v.Index(i), list)
		}
	default:
		list = append(list, v)
	}
	return list
}

// change changes a leaf, perhaps into what is the same to readers.
func change(v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*x = resource.MustParse("7777")
		return
	case *metav1.Time:
		*x = metav1.Unix(7, 7)
		return
	case *metav1.MicroTime:
		*x = metav1.MicroTime(metav1.Unix(7, 7000))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() ^ 1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(v.Uint() ^ 1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(v.Float() + 1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), v.Len()/2, v.Len()))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	}
}
