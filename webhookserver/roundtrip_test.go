// SPDX-License-Identifier: Apache-2.0

package webhookserver_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/webhookserver"
)

// A Func sees the same request and the same objects whichever way they came,
// and its caller the same response.
func TestFormsAreEqual(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		req, object, old := drawRequest(r), drawPod(r), drawPod(r)
		response := drawResponse(r)
		version := rapid.SampledFrom([]string{v1, v1beta1}).Draw(r, "version")
		coding := rapid.SampledFrom([]string{"", "gzip", "zstd"}).Draw(r, "coding")

		want := served(t, version, mediaJSON, "", with(t, req, mediaJSON, object, old), response)
		for name, got := range map[string]exchange{
			"JSON, compressed": served(t, version, mediaJSON, coding, with(t, req, mediaJSON, object, old), response),
			"protobuf":         served(t, version, mediaProtobuf, coding, with(t, req, mediaJSON, object, old), response),
			"native":           served(t, version, mediaProtobuf, coding, with(t, req, mediaProtobuf, object, old), response),
		} {
			if diff := cmp.Diff(want, got); diff != "" {
				r.Fatalf("%s differs from JSON (-want +got):\n%s", name, diff)
			}
		}
		if want.Object.Name != object.Name || want.Answer.Response.UID != req.UID {
			r.Fatalf("JSON itself came out as %+v", want)
		}
	})
}

// exchange is what both sides saw of one call.
type exchange struct {
	Request     admissionv1.AdmissionRequest // without its objects
	Object, Old corev1.Pod
	Answer      admissionv1.AdmissionReview
}

func served(t *testing.T, version, mediaType, coding string, req *admissionv1.AdmissionRequest, response *admissionv1.AdmissionResponse) exchange {
	t.Helper()
	var seen exchange
	h := webhookserver.New(func(_ context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		object, err := webhookserver.Object[corev1.Pod](req)
		if err != nil {
			t.Error(err)
			return nil
		}
		if err := webhookserver.Decode(req.OldObject, &seen.Old); err != nil {
			t.Error(err)
		}
		seen.Request, seen.Object = *req, *object
		seen.Request.Object, seen.Request.OldObject = runtime.RawExtension{}, runtime.RawExtension{}
		return response
	}, webhookserver.Options{NativeObjects: true})

	body := encode(t, mediaType, review(version, req))
	switch coding {
	case "gzip":
		body = gzipped(t, body)
	case "zstd":
		body = zstded(t, body)
	}
	w := post(h, "/", body, "Content-Type", mediaType, "Content-Encoding", coding)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", mediaType, w.Code, w.Body)
	}
	seen.Answer = *decode(t, mediaType, w.Body.Bytes())
	return seen
}

// with returns the request with its objects in the form of the media type.
func with(t *testing.T, req admissionv1.AdmissionRequest, mediaType string, object, old *corev1.Pod) *admissionv1.AdmissionRequest {
	t.Helper()
	req.Object.Raw = encode(t, mediaType, object)
	req.OldObject.Raw = encode(t, mediaType, old)
	return &req
}

func word(r *rapid.T, label string) string {
	return rapid.StringMatching(`[a-z"\\é]{1,8}`).Draw(r, label)
}

func drawRequest(r *rapid.T) admissionv1.AdmissionRequest {
	dryRun := rapid.Bool().Draw(r, "dryRun")
	return admissionv1.AdmissionRequest{
		UID:       types.UID(word(r, "uid")),
		Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		Name:      rapid.StringN(0, 20, -1).Draw(r, "name"),
		Namespace: word(r, "namespace"),
		Operation: admissionv1.Update,
		UserInfo: authenticationv1.UserInfo{
			Username: word(r, "user"),
			Groups:   []string{word(r, "group")},
			Extra:    map[string]authenticationv1.ExtraValue{word(r, "extra"): {word(r, "value")}},
		},
		DryRun:  &dryRun,
		Options: runtime.RawExtension{Raw: []byte(`{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}`)},
	}
}

func drawPod(r *rapid.T) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: word(r, "pod"), Labels: map[string]string{word(r, "label"): word(r, "value")}},
		Spec: corev1.PodSpec{
			Priority:   new(rapid.Int32().Draw(r, "priority")),
			Containers: []corev1.Container{{Name: word(r, "container"), Image: rapid.StringN(0, 20, -1).Draw(r, "image")}},
		},
	}
}

func drawResponse(r *rapid.T) *admissionv1.AdmissionResponse {
	resp := rapid.SampledFrom([]*admissionv1.AdmissionResponse{
		webhookserver.Allowed(),
		webhookserver.Allowed("take care"),
		webhookserver.Denied(http.StatusForbidden, "no"),
		webhookserver.PatchResponse(webhookserver.Remove("/metadata/labels")),
	}).Draw(r, "response")
	if rapid.Bool().Draw(r, "annotated") {
		annotated := *resp
		annotated.AuditAnnotations = map[string]string{word(r, "key"): word(r, "value")}
		return &annotated
	}
	return resp
}
