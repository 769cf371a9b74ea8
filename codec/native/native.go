// SPDX-License-Identifier: Apache-2.0

// Package native turns the JSON of objects of built-in kinds into Kubernetes'
// native protobuf, once for all webhooks that would else decode the JSON each.
package native

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/json"

	"github.com/admission-dispatcher/dispatcher/internal/quantity"
)

// Transcoder turns JSON into native protobuf. It is safe for concurrent use.
type Transcoder struct {
	scheme     *runtime.Scheme
	serializer *protobuf.Serializer
	kinds      map[string]map[string]schema.GroupVersionKind // by apiVersion and kind
}

// New returns a Transcoder of the built-in kinds.
func New() *Transcoder {
	scheme := builtIn()
	t := &Transcoder{
		scheme:     scheme,
		serializer: protobuf.NewSerializer(scheme, scheme),
		kinds:      map[string]map[string]schema.GroupVersionKind{},
	}
	for gvk := range scheme.AllKnownTypes() {
		version := gvk.GroupVersion().String()
		if t.kinds[version] == nil {
			t.kinds[version] = map[string]schema.GroupVersionKind{}
		}
		t.kinds[version][gvk.Kind] = gvk
	}
	return t
}

// AppendNative appends object, which is JSON of that apiVersion and kind, as
// native protobuf in its envelope to dst. ok is false where a webhook that decodes
// this into Kubernetes' type would not get exactly what it gets of the JSON: an
// unknown kind, a field that the type does not have or that is there twice, or a
// value that protobuf has no place for. Whether a list or map is empty or absent
// is no difference, as it is none in what Kubernetes stores.
func (t *Transcoder) AppendNative(dst, apiVersion, kind, object []byte) (out []byte, ok bool) {
	gvk, ok := t.kinds[string(apiVersion)][string(kind)]
	if !ok {
		return dst, false
	}
	typed, err := t.scheme.New(gvk)
	if err != nil {
		return dst, false
	}
	if !quantity.AreDecodable(object, reflect.TypeOf(typed)) {
		return dst, false
	}
	if strict, err := json.UnmarshalStrict(object, typed); err != nil || len(strict) > 0 {
		return dst, false
	}
	start := len(dst)
	w := appender{dst}
	if err := t.serializer.Encode(typed, &w); err != nil || !t.isLossless(typed, w.data[start:]) {
		return w.data[:start], false
	}
	return w.data, true
}

// isLossless compares typed with what a webhook decodes of data. Types and
// serializers differ in details that no list of ours could keep up with: nested
// kinds, fractions of seconds.
func (t *Transcoder) isLossless(typed runtime.Object, data []byte) bool {
	decoded, _, err := t.serializer.Decode(data, nil, nil)
	return err == nil && isEqual(reflect.ValueOf(&typed).Elem(), reflect.ValueOf(&decoded).Elem())
}

// appender appends what is written to it.
type appender struct{ data []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.data = append(a.data, p...)
	return len(p), nil
}
