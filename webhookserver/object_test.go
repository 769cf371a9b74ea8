// SPDX-License-Identifier: Apache-2.0

package webhookserver_test

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admission-dispatcher/dispatcher/webhookserver"
)

func TestObjectOfDelete(t *testing.T) {
	for _, mediaType := range []string{mediaJSON, mediaProtobuf} {
		req := &admissionv1.AdmissionRequest{Operation: admissionv1.Delete, OldObject: runtime.RawExtension{Raw: encode(t, mediaType, pod("web"))}}
		got, err := webhookserver.Object[corev1.Pod](req)
		if err != nil || got.Name != "web" || got.Kind != "Pod" {
			t.Errorf("%s: %+v, %v", mediaType, got, err)
		}
		req.Operation = admissionv1.Update
		if _, err := webhookserver.Object[corev1.Pod](req); err == nil {
			t.Error("an update without an object has one")
		}
	}
}

func TestDecode(t *testing.T) {
	json, native := encode(t, mediaJSON, pod("web")), encode(t, mediaProtobuf, pod("web"))
	for _, test := range []struct {
		name string
		raw  []byte
		into runtime.Object
		want string // part of the error
	}{
		{"metadata of JSON", json, &metav1.PartialObjectMetadata{}, ""},
		{"metadata of native", native, &metav1.PartialObjectMetadata{}, ""},
		{"unstructured JSON", json, &unstructured.Unstructured{}, ""},
		{"unstructured native", native, &unstructured.Unstructured{}, "*unstructured.Unstructured from protobuf"},
		{"another kind, native", native, &appsv1.Deployment{}, "the object is a /v1, Kind=Pod"},
		{"nothing", nil, &corev1.Pod{}, "no such object"},
		{"not JSON", []byte("{"), &corev1.Pod{}, "decoding a *v1.Pod from JSON"},
		{"the prefix alone", []byte("k8s\x00"), &corev1.Pod{}, "decoding a *v1.Pod from protobuf"},
		{"cut short", native[:len(native)-1], &corev1.Pod{}, "decoding a *v1.Pod from protobuf"},
	} {
		err := webhookserver.Decode(runtime.RawExtension{Raw: test.raw}, test.into)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
		if named, ok := test.into.(metav1.Object); err == nil && (!ok || named.GetName() != "web" || test.into.GetObjectKind().GroupVersionKind().Kind != "Pod") {
			t.Errorf("%s: got %+v", test.name, test.into)
		}
	}
}

// A field in another case is another field: a case-blind decoder would let a
// caller say two things at once.
func TestDecodeIsCaseSensitive(t *testing.T) {
	var got corev1.Pod
	err := webhookserver.Decode(runtime.RawExtension{Raw: []byte(`{"metadata":{"name":"a"},"Metadata":{"name":"b"}}`)}, &got)
	if err != nil || got.Name != "a" {
		t.Errorf("%q, %v", got.Name, err)
	}
}
