// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/codec"
)

func TestScanObject(t *testing.T) {
	const pod = ` {"metadata":{"name":"w\u0065b","namespace":"shop","uid":"o1","labels":{"a":"b"}},"kind":"Pod","apiVersion":"v1"} `
	var o codec.Object
	if err := codec.ScanObject(&o, []byte(pod)); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%s %s %s %s %s %s %v", o.APIVersion, o.Kind, o.Name, o.Namespace, o.UID, o.Labels, o.HasMetadata())
	if want := "v1 Pod web shop o1 [{a b}] true"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if string(o.Raw) != strings.TrimSpace(pod) {
		t.Errorf("raw is %q", o.Raw)
	}
	if err := codec.ScanObject(&o, []byte(`{}`)); err != nil || o.Name != nil || len(o.Labels) > 0 || o.HasMetadata() {
		t.Errorf("scanned again: %v, %+v", err, o)
	}
	if err := codec.ScanObject(&o, []byte(`null`)); err != nil || !o.IsNull() {
		t.Errorf("null: %v, %s", err, o.Raw)
	}
}

func TestScanObjectIsAsStrictAsDecode(t *testing.T) {
	tests := []struct{ name, object, pointer string }{
		{"B1 empty", ``, ""},
		{"B2 trailing bytes", `{}{}`, ""},
		{"B3 duplicate metadata", `{"metadata":{},"metadata":{}}`, "/metadata"},
		{"B3 duplicate label", `{"metadata":{"labels":{"a":"","a":""}}}`, "/metadata/labels"},
		{"B4 case variant", `{"Kind":"Pod"}`, ""},
		{"B5 invalid UTF-8", "{\"metadata\":{\"a\":\"\xff\"}}", ""},
		{"B6 too deep for a review", `{"a":` + strings.Repeat("[", 9_998) + strings.Repeat("]", 9_998) + `}`, ""},
		{"B13 a string", `"x"`, ""},
		{"B13 labels not a map of strings", `{"metadata":{"labels":{"a":1}}}`, "/metadata/labels"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var bad *codec.RequestError
			if err := codec.ScanObject(new(codec.Object), []byte(tt.object)); !errors.As(err, &bad) || bad.Pointer != tt.pointer {
				t.Errorf("got %#v, want a RequestError with the pointer %q", err, tt.pointer)
			}
		})
	}
	t.Run("B6 as deep as in a review", func(t *testing.T) {
		object := `{"a":` + strings.Repeat("[", 9_997) + strings.Repeat("]", 9_997) + `}`
		if err := codec.ScanObject(new(codec.Object), []byte(object)); err != nil {
			t.Error(err)
		}
	})
}

func TestLabelsLookup(t *testing.T) {
	for _, n := range []int{1, 16, 17, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var o codec.Object
			if err := codec.ScanObject(&o, []byte(`{"metadata":{"labels":`+manyLabels(n, "")+`}}`)); err != nil {
				t.Fatal(err)
			}
			for i := range n {
				key, want := fmt.Sprintf("key%d", (i*7919)%n), fmt.Sprintf("v%d", i)
				if v, ok := o.Labels.Lookup(key); !ok || string(v) != want {
					t.Errorf("%s is %q, %v, want %q", key, v, ok, want)
				}
			}
			if _, ok := o.Labels.Lookup("other"); ok {
				t.Error("found a label that is not there")
			}
		})
	}
}
