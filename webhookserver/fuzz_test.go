// SPDX-License-Identifier: Apache-2.0

package webhookserver_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admission-dispatcher/dispatcher/webhookserver"
)

// Whatever comes, the handler answers the review's own uid in the review's own
// form, or refuses; nothing in it panics.
func FuzzHandler(f *testing.F) {
	req := &admissionv1.AdmissionRequest{UID: "a", Object: runtime.RawExtension{Raw: encode(f, mediaJSON, pod("web"))}}
	native := &admissionv1.AdmissionRequest{UID: "a", Object: runtime.RawExtension{Raw: encode(f, mediaProtobuf, pod("web"))}}
	for _, body := range [][]byte{encode(f, mediaJSON, review(v1, req)), encode(f, mediaProtobuf, review(v1beta1, req)), encode(f, mediaProtobuf, review(v1, native))} {
		for protobuf := range 2 {
			f.Add(body, protobuf == 1, "")
			f.Add(gzipped(f, body), protobuf == 1, "gzip")
			f.Add(zstded(f, body), protobuf == 1, "zstd")
		}
	}
	var uid string
	h := webhookserver.New(func(_ context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		uid = string(req.UID)
		if _, err := webhookserver.Object[corev1.Pod](req); err != nil {
			return webhookserver.Denied(http.StatusBadRequest, err.Error())
		}
		return webhookserver.Allowed()
	}, webhookserver.Options{MaxBytes: 1 << 16, NativeObjects: true})

	f.Fuzz(func(t *testing.T, body []byte, protobuf bool, coding string) {
		mediaType := mediaJSON
		if protobuf {
			mediaType = mediaProtobuf
		}
		w := post(h, "/", body, "Content-Type", mediaType, "Content-Encoding", coding)
		switch w.Code {
		case http.StatusOK:
			if answer := decode(t, mediaType, w.Body.Bytes()); string(answer.Response.UID) != uid {
				t.Errorf("uid %q is answered with %q", uid, answer.Response.UID)
			}
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		default:
			t.Errorf("%d %s", w.Code, strings.TrimSpace(w.Body.String()))
		}
	})
}
