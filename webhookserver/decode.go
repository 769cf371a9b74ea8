// SPDX-License-Identifier: Apache-2.0

package webhookserver

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"reflect"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// nativePrefix starts an object in native protobuf; no JSON starts so.
var nativePrefix = []byte("k8s\x00")

func isNative(raw []byte) bool { return bytes.HasPrefix(raw, nativePrefix) }

// Object decodes the object that a request is about: the new one, or for DELETE
// the one that goes.
//
//	pod, err := webhookserver.Object[corev1.Pod](req)
//
// Fields that T does not have are passed over. The object of a CONNECT is the
// options of the connection, such as a PodExecOptions.
func Object[T any, P interface {
	*T
	runtime.Object
}](req *admissionv1.AdmissionRequest) (P, error) {
	raw := req.Object
	if req.Operation == admissionv1.Delete {
		raw = req.OldObject
	}
	into := P(new(T))
	if err := Decode(raw, into); err != nil {
		return nil, err
	}
	return into, nil
}

// Decode reads an object of a request, JSON or native protobuf, into one of its
// type. Use it for oldObject and options, and for objects of which only some
// fields matter: a *metav1.PartialObjectMetadata takes every object's metadata,
// an *unstructured.Unstructured every object that is JSON.
//
// An object that is not there is an error, and so is a native object of another
// kind, group or version than into's.
func Decode(raw runtime.RawExtension, into runtime.Object) error {
	if len(raw.Raw) == 0 {
		return errors.New("the request has no such object")
	}
	if !isNative(raw.Raw) {
		if _, _, err := jsonSerializer.Decode(raw.Raw, nil, into); err != nil {
			return fmt.Errorf("decoding a %T from JSON: %w", into, err)
		}
		return nil
	}
	_, kind, err := protobufSerializer.Decode(raw.Raw, nil, into)
	if kind != nil && !takes(into, *kind) { // whatever came of it
		return fmt.Errorf("decoding a %T from protobuf: the object is a %s", into, kind)
	}
	if err != nil {
		return fmt.Errorf("decoding a %T from protobuf: %w", into, err)
	}
	into.GetObjectKind().SetGroupVersionKind(*kind)
	return nil
}

// takes reports whether into is of the kind. Protobuf names no fields: those of
// another kind, or of another version of it, would silently be taken for into's. A
// built-in kind is named after its Go type, and its group and version after the
// package.
func takes(into runtime.Object, kind schema.GroupVersionKind) bool {
	if _, ok := into.(*metav1.PartialObjectMetadata); ok {
		return true
	}
	t := reflect.TypeOf(into).Elem()
	group, version := path.Split(t.PkgPath())
	return t.Name() == kind.Kind && version == kind.Version && path.Base(group) == packageOf(kind.Group)
}

// packageOf returns the name of the Go package of a built-in group: its first word,
// but for two.
func packageOf(group string) string {
	switch group {
	case "":
		return "core"
	case "internal.apiserver.k8s.io":
		return "apiserverinternal"
	}
	name, _, _ := strings.Cut(group, ".")
	return name
}
