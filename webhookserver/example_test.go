// SPDX-License-Identifier: Apache-2.0

package webhookserver_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/webhookserver"
)

// noLatest denies pods that run an image without a version.
func noLatest(ctx context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	pod, err := webhookserver.Object[corev1.Pod](req)
	if err != nil {
		return webhookserver.Denied(http.StatusBadRequest, err.Error())
	}
	for _, c := range pod.Spec.Containers {
		if strings.HasSuffix(c.Image, ":latest") {
			return webhookserver.Denied(http.StatusForbidden, fmt.Sprintf("%s in cluster %s: name a version", c.Image, webhookserver.Cluster(ctx)))
		}
	}
	return webhookserver.Allowed()
}

// A validating webhook. It reads objects with Object only, so they may come as
// native protobuf.
func Example() {
	handler := webhookserver.New(noLatest, webhookserver.Options{NativeObjects: true})

	r := httptest.NewRequest(http.MethodPost, "/validate?timeout=5s", strings.NewReader(`{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"request": {"uid": "6f0a", "operation": "CREATE", "object": {
			"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "web", "image": "nginx:latest"}]}}}}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Admission-Cluster", "east")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)

	fmt.Print(w.Body)
	fmt.Println("Accept-Post:", w.Header().Get("Accept-Post"))
	fmt.Println("Accept-Encoding:", w.Header().Get("Accept-Encoding"))
	// Output:
	// {"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"6f0a","allowed":false,"status":{"metadata":{},"status":"Failure","message":"nginx:latest in cluster east: name a version","code":403}}}
	// Accept-Post: application/json, application/vnd.kubernetes.protobuf;objects=native
	// Accept-Encoding: zstd, gzip
}

// A mutating webhook that adds a label to objects of every kind.
func ExamplePatchResponse() {
	label := func(_ context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		var object metav1.PartialObjectMetadata
		if err := webhookserver.Decode(req.Object, &object); err != nil {
			return webhookserver.Denied(http.StatusBadRequest, err.Error())
		}
		if object.Labels == nil {
			return webhookserver.PatchResponse(webhookserver.Add("/metadata/labels", map[string]string{"example.com/team": "shop"}))
		}
		return webhookserver.PatchResponse(webhookserver.Add(webhookserver.Pointer("metadata", "labels", "example.com/team"), "shop"))
	}

	req := &admissionv1.AdmissionRequest{}
	req.Object.Raw = []byte(`{"metadata":{"labels":{"app":"web"}}}`)
	fmt.Printf("%s\n", label(context.Background(), req).Patch)
	// Output:
	// [{"op":"add","path":"/metadata/labels/example.com~1team","value":"shop"}]
}

// A request may pass with something for the user to read.
func ExampleAllowed() {
	resp := webhookserver.Allowed("the field spec.serviceAccount is deprecated")
	fmt.Println(resp.Allowed, resp.Warnings)
	// Output:
	// true [the field spec.serviceAccount is deprecated]
}

func ExamplePointer() {
	fmt.Println(webhookserver.Pointer("metadata", "annotations", "example.com/owner"))
	fmt.Println(webhookserver.Pointer("spec", "containers", "0", "image"))
	// Output:
	// /metadata/annotations/example.com~1owner
	// /spec/containers/0/image
}
