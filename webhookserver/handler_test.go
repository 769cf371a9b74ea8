// SPDX-License-Identifier: Apache-2.0

package webhookserver_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admission-dispatcher/dispatcher/webhookserver"
)

// The answer has the form, the version and the uid of the review.
func TestAnswerInKind(t *testing.T) {
	shared := webhookserver.Denied(http.StatusForbidden, "no")
	shared.UID = "another"
	h := webhookserver.New(func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { return shared }, webhookserver.Options{})
	for _, mediaType := range []string{mediaJSON, mediaProtobuf} {
		for _, version := range []string{v1, v1beta1} {
			body := encode(t, mediaType, review(version, &admissionv1.AdmissionRequest{UID: "a"}))
			w := post(h, "/", body, "Content-Type", mediaType+"; charset=utf-8")
			if w.Code != http.StatusOK || w.Header().Get("Content-Type") != mediaType {
				t.Errorf("%s %s: %d %v", mediaType, version, w.Code, w.Header())
			}
			answer := decode(t, mediaType, w.Body.Bytes())
			if answer.APIVersion != version || answer.Kind != "AdmissionReview" || answer.Request != nil {
				t.Errorf("%s %s: the answer is %+v", mediaType, version, answer)
			}
			if answer.Response.UID != "a" || answer.Response.Allowed || answer.Response.Result.Message != "no" {
				t.Errorf("%s %s: the response is %+v", mediaType, version, answer.Response)
			}
		}
	}
	if shared.UID != "another" {
		t.Error("the Func's response was changed")
	}
}

func TestCluster(t *testing.T) {
	var cluster string
	h := webhookserver.New(func(ctx context.Context, _ *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		cluster = webhookserver.Cluster(ctx)
		return webhookserver.Allowed()
	}, webhookserver.Options{})
	body := encode(t, mediaJSON, review(v1, &admissionv1.AdmissionRequest{UID: "a"}))
	post(h, "/", body, "Content-Type", mediaJSON, "Admission-Cluster", "east")
	if cluster != "east" {
		t.Errorf("the cluster is %q", cluster)
	}
	post(h, "/", body, "Content-Type", mediaJSON)
	if cluster != "" || webhookserver.Cluster(t.Context()) != "" {
		t.Errorf("without a header the cluster is %q", cluster)
	}
}

func TestTimeoutIsTheDeadline(t *testing.T) {
	var left time.Duration
	var set bool
	h := webhookserver.New(func(ctx context.Context, _ *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		var deadline time.Time
		deadline, set = ctx.Deadline()
		left = time.Until(deadline)
		return webhookserver.Allowed()
	}, webhookserver.Options{})
	body := encode(t, mediaJSON, review(v1, &admissionv1.AdmissionRequest{UID: "a"}))
	post(h, "/?timeout=1h", body, "Content-Type", mediaJSON)
	if !set || left <= 0 || left > time.Hour {
		t.Errorf("with timeout=1h: %v, %v left", set, left)
	}
	post(h, "/", body, "Content-Type", mediaJSON)
	if set {
		t.Error("without a timeout there is a deadline")
	}
}

func TestAdvertisement(t *testing.T) {
	for _, test := range []struct {
		options webhookserver.Options
		want    string
	}{
		{webhookserver.Options{}, "application/json, application/vnd.kubernetes.protobuf"},
		{webhookserver.Options{NativeObjects: true}, "application/json, application/vnd.kubernetes.protobuf;objects=native"},
	} {
		h := webhookserver.New(allow, test.options)
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodOptions} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(method, "/", http.NoBody))
			advertised(t, w.Header(), test.want)
		}
		w := post(h, "/", encode(t, mediaJSON, review(v1, &admissionv1.AdmissionRequest{UID: "a"})), "Content-Type", mediaJSON)
		if w.Code != http.StatusOK {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		advertised(t, w.Header(), test.want)
	}
}

func advertised(t *testing.T, h http.Header, acceptPost string) {
	t.Helper()
	if got := h.Get("Accept-Post"); got != acceptPost {
		t.Errorf("Accept-Post is %q, want %q", got, acceptPost)
	}
	if got := h.Get("Accept-Encoding"); got != "zstd, gzip" {
		t.Errorf("Accept-Encoding is %q", got)
	}
}

// A Func that reads Raw as JSON never sees a native object.
func TestNativeObjectsAreRefusedWithoutTheOption(t *testing.T) {
	native := runtime.RawExtension{Raw: encode(t, mediaProtobuf, pod("web"))}
	for name, req := range map[string]admissionv1.AdmissionRequest{
		"object": {Object: native}, "oldObject": {OldObject: native}, "options": {Options: native},
	} {
		req.UID = "a"
		body := encode(t, mediaProtobuf, review(v1, &req))
		w := post(webhookserver.New(allow, webhookserver.Options{}), "/", body, "Content-Type", mediaProtobuf)
		if w.Code != http.StatusUnsupportedMediaType || !strings.Contains(w.Body.String(), "native protobuf") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		w = post(webhookserver.New(allow, webhookserver.Options{NativeObjects: true}), "/", body, "Content-Type", mediaProtobuf)
		if w.Code != http.StatusOK {
			t.Errorf("%s with the option: %d %s", name, w.Code, w.Body)
		}
	}
}

// The log has what a caller must not see.
func TestPanic(t *testing.T) {
	var log bytes.Buffer
	h := webhookserver.New(func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		panic("secret")
	}, webhookserver.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	w := post(h, "/", encode(t, mediaJSON, review(v1, &admissionv1.AdmissionRequest{UID: "a"})), "Content-Type", mediaJSON)
	if w.Code != http.StatusInternalServerError || w.Body.String() != "the webhook panicked\n" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "panic=secret") || !strings.Contains(log.String(), "TestPanic") {
		t.Errorf("the log has neither value nor place: %s", &log)
	}
	advertised(t, w.Header(), "application/json, application/vnd.kubernetes.protobuf")
}

func TestNoAnswer(t *testing.T) {
	h := webhookserver.New(func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { return nil }, webhookserver.Options{})
	w := post(h, "/", encode(t, mediaJSON, review(v1, &admissionv1.AdmissionRequest{UID: "a"})), "Content-Type", mediaJSON)
	if w.Code != http.StatusInternalServerError || w.Body.String() != "the webhook gave no answer\n" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

func pod(name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"},
	}
}
