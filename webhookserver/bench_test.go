// SPDX-License-Identifier: Apache-2.0

package webhookserver_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admission-dispatcher/dispatcher/webhookserver"
)

// What a webhook spends on a review of a Pod, which it decodes, in each form.
func BenchmarkHandler(b *testing.B) {
	for _, form := range []struct{ name, review, object string }{
		{"JSON", mediaJSON, mediaJSON}, {"Protobuf", mediaProtobuf, mediaJSON}, {"ProtobufNative", mediaProtobuf, mediaProtobuf},
	} {
		b.Run(form.name, func(b *testing.B) {
			req := &admissionv1.AdmissionRequest{UID: "a", Object: runtime.RawExtension{Raw: encode(b, form.object, largePod())}}
			body := encode(b, form.review, review(v1, req))
			h := webhookserver.New(noLatest, webhookserver.Options{NativeObjects: true})
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
				r.Header.Set("Content-Type", form.review)
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}

// largePod is about 6 KB of JSON.
func largePod() *corev1.Pod {
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: pod("web").ObjectMeta}
	for i := range 6 {
		c := corev1.Container{Name: fmt.Sprintf("container-%d", i), Image: "registry.example.com/shop/web:1.2.3", Command: []string{"/web", "--listen=:8080"}}
		for j := range 10 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", j), Value: "https://service.shop.svc.cluster.local:8443/path"})
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	return p
}
