// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/admission-dispatcher/dispatcher/webhookserver"
)

const (
	mediaJSON     = "application/json"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
)

var wire = protobuf.NewSerializer(runtime.NewScheme(), runtime.NewScheme())

// The handler decides alike and is answered for in kind, whichever way the
// review and its object are written.
func TestOwner(t *testing.T) {
	for _, form := range []struct{ review, object string }{
		{mediaJSON, mediaJSON}, {mediaProtobuf, mediaJSON}, {mediaProtobuf, mediaProtobuf},
	} {
		for _, labels := range []map[string]string{nil, {"owner": "shop"}} {
			pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: labels}}
			resp := ask(t, handler(), "/validate-owner", form.review, write(t, form.object, pod))
			if resp.Allowed != (labels != nil) || !resp.Allowed && resp.Result.Code != http.StatusForbidden {
				t.Errorf("%v with labels %v: %+v", form, labels, resp)
			}
		}
	}
}

// Patches reach the caller.
func TestPatches(t *testing.T) {
	h := webhookserver.New(Adapt(admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		return admission.Patched("", jsonpatch.NewOperation("add", "/metadata/labels", map[string]string{"owner": "shop"}))
	})), webhookserver.Options{})
	for _, mediaType := range []string{mediaJSON, mediaProtobuf} {
		resp := ask(t, h, "/", mediaType, []byte(`{}`))
		const want = `[{"op":"add","path":"/metadata/labels","value":{"owner":"shop"}}]`
		if !resp.Allowed || string(resp.Patch) != want || *resp.PatchType != admissionv1.PatchTypeJSONPatch {
			t.Errorf("%s: %+v", mediaType, resp)
		}
	}
}

// ask posts a review of the object and returns the response to it.
func ask(t *testing.T, h http.Handler, target, mediaType string, object []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	review := &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  &admissionv1.AdmissionRequest{UID: "a", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: object}},
	}
	r := httptest.NewRequest(http.MethodPost, target, bytes.NewReader(write(t, mediaType, review)))
	r.Header.Set("Content-Type", mediaType)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != mediaType {
		t.Fatalf("%s: %d %v %s", mediaType, w.Code, w.Header(), w.Body)
	}
	answer := new(admissionv1.AdmissionReview)
	err := json.Unmarshal(w.Body.Bytes(), answer)
	if mediaType == mediaProtobuf {
		_, _, err = wire.Decode(w.Body.Bytes(), nil, answer)
	}
	if err != nil || answer.Response == nil || answer.Response.UID != "a" {
		t.Fatalf("%s: %+v, %v", mediaType, answer, err)
	}
	return answer.Response
}

func write(t *testing.T, mediaType string, object runtime.Object) []byte {
	t.Helper()
	var out bytes.Buffer
	err := json.NewEncoder(&out).Encode(object)
	if mediaType == mediaProtobuf {
		out.Reset()
		err = wire.Encode(object, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
