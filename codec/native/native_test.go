// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/admission-dispatcher/dispatcher/codec/native"
)

func transcode(t testing.TB, object string) ([]byte, bool) {
	t.Helper()
	var meta runtime.TypeMeta
	if err := json.Unmarshal([]byte(object), &meta); err != nil {
		t.Fatal(err)
	}
	return native.New().AppendNative([]byte("head"), []byte(meta.APIVersion), []byte(meta.Kind), []byte(object))
}

func TestAppendNative(t *testing.T) {
	const pod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","creationTimestamp":null`
	tests := []struct {
		name, object string
		ok           bool
	}{
		{"plain", pod + `},"spec":{"containers":[{"name":"c","image":"i"}]},"status":{}}`, true},
		{"quantity not canonical", pod + `},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1000m","memory":"0.5Gi"}}}]}}`, true},
		{"quantity that takes long to decode", pod + `},"spec":{"overhead":{"cpu":"1e-1000000000"}}}`, false},
		{"text like that", pod + `,"labels":{"a":"1e-1000000000"}}}`, true},
		{"empty lists and maps", pod + `,"labels":{}},"spec":{"containers":[],"nodeSelector":{}}}`, true},
		{"nulls", pod + `,"labels":null},"spec":{"containers":[null],"nodeSelector":{"a":null},"hostname":null}}`, true},
		{"managed fields", pod + `,"managedFields":[{"manager":"m","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{ "f:x":{}}}}]}}`, true},
		{"creation time", pod[:len(pod)-4] + `"2026-01-02T03:04:05Z"}}`, true},
		{"creation time with a fraction", pod[:len(pod)-4] + `"2026-01-02T03:04:05.5Z"}}`, false},
		{"unknown field", pod + `},"spec":{"newField":1}}`, false},
		{"unknown field that is null", pod + `},"spec":{"newField":null}}`, false},
		{"unknown field deep inside", pod + `},"spec":{"containers":[{"name":"c","env":[{"name":"a","valueFrom":{"fileRef":{"x":1}}}]}]}}`, false},
		{"case variant", pod + `},"spec":{"Containers":[]}}`, false},
		{"duplicate field", pod + `},"spec":{"hostname":"a","hostname":"b"}}`, false},
		{"wrong type", pod + `},"spec":{"containers":{}}}`, false},
		{"number beyond int32", pod + `},"spec":{"priority":4294967296}}`, false},
		{"nested kind", `{"kind":"StatefulSet","apiVersion":"apps/v1","spec":{"volumeClaimTemplates":[{"kind":"PersistentVolumeClaim","apiVersion":"v1"}]}}`, false},
		{"no nested kind", `{"kind":"StatefulSet","apiVersion":"apps/v1","spec":{"volumeClaimTemplates":[{"metadata":{"name":"data"}}]}}`, true},
		{"unknown kind", `{"kind":"Widget","apiVersion":"v1"}`, false},
		{"custom resource", `{"kind":"Widget","apiVersion":"example.com/v1"}`, false},
		{"beta version", `{"kind":"CronJob","apiVersion":"batch/v1beta1"}`, false},
		{"no kind", `{}`, false},
		{"options", `{"kind":"PodExecOptions","apiVersion":"v1","command":["sh"],"stdin":true}`, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, ok := transcode(t, tt.object)
			if ok != tt.ok {
				t.Fatalf("got %v", ok)
			}
			if string(out[:4]) != "head" {
				t.Error("what was there is lost")
			}
		})
	}
}

func TestAppendNativeIsWhatAWebhookDecodes(t *testing.T) {
	const object = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	out, _ := transcode(t, object)
	var want, got corev1.Pod
	if err := utiljson.Unmarshal([]byte(object), &want); err != nil {
		t.Fatal(err)
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(out[len("headk8s\x00"):]); err != nil {
		t.Fatal(err)
	}
	if envelope.Kind != "Pod" || envelope.APIVersion != "v1" {
		t.Errorf("the envelope says %v", envelope.TypeMeta)
	}
	if err := got.Unmarshal(envelope.Raw); err != nil {
		t.Fatal(err)
	}
	want.Kind, want.APIVersion = "", ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
