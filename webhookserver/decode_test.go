// SPDX-License-Identifier: Apache-2.0

package webhookserver_test

import (
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

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
		{"another version, native", encode(t, mediaProtobuf, scaler()), &autoscalingv2.HorizontalPodAutoscaler{}, "the object is a autoscaling/v1, Kind=HorizontalPodAutoscaler"},
		{"another group, native", encode(t, mediaProtobuf, event()), &eventsv1.Event{}, "the object is a /v1, Kind=Event"},
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

func scaler() *autoscalingv1.HorizontalPodAutoscaler {
	return &autoscalingv1.HorizontalPodAutoscaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "HorizontalPodAutoscaler"},
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
	}
}

func event() *corev1.Event {
	return &corev1.Event{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}, ObjectMeta: metav1.ObjectMeta{Name: "web"}}
}

// Every built-in kind that has protobuf decodes into its own type.
func TestDecodeKnowsEveryKind(t *testing.T) {
	seen := 0
	for kind, of := range scheme.Scheme.AllKnownTypes() {
		object, ok := reflect.New(of).Interface().(runtime.Object)
		if _, native := object.(interface{ Marshal() ([]byte, error) }); !ok || !native || !strings.HasPrefix(of.PkgPath(), "k8s.io/api/") || of.Name() != kind.Kind {
			continue
		}
		object.GetObjectKind().SetGroupVersionKind(kind)
		if err := webhookserver.Decode(runtime.RawExtension{Raw: encode(t, mediaProtobuf, object)}, object); err != nil {
			t.Error(err)
		}
		seen++
	}
	if seen < 100 {
		t.Errorf("only %d kinds", seen)
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
