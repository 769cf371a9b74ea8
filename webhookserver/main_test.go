// SPDX-License-Identifier: Apache-2.0

package webhookserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/goleak"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/admission-dispatcher/dispatcher/webhookserver"
)

const (
	mediaJSON     = "application/json"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
	v1            = "admission.k8s.io/v1"
	v1beta1       = "admission.k8s.io/v1beta1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wire writes protobuf as a caller does.
var wire = protobuf.NewSerializer(runtime.NewScheme(), runtime.NewScheme())

func allow(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return webhookserver.Allowed()
}

// review returns a review of the version about the request.
func review(version string, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionReview {
	return &admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "AdmissionReview"}, Request: req}
}

// encode writes an object in the form of the media type.
func encode(t testing.TB, mediaType string, object runtime.Object) []byte {
	t.Helper()
	if mediaType == mediaJSON {
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	var raw bytes.Buffer
	if err := wire.Encode(object, &raw); err != nil {
		t.Fatal(err)
	}
	return raw.Bytes()
}

// decode reads an answer in the form of the media type.
func decode(t testing.TB, mediaType string, raw []byte) *admissionv1.AdmissionReview {
	t.Helper()
	answer := new(admissionv1.AdmissionReview)
	if mediaType == mediaJSON {
		if err := json.Unmarshal(raw, answer); err != nil {
			t.Fatalf("%v in %q", err, raw)
		}
		return answer
	}
	_, kind, err := wire.Decode(raw, nil, answer)
	if err != nil {
		t.Fatalf("%v in %q", err, raw)
	}
	answer.SetGroupVersionKind(*kind)
	return answer
}

// post sends a body to the handler; header is pairs of name and value.
func post(h http.Handler, target string, body []byte, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, target, bytes.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// unsized hides a body's length, as a chunked one's is.
func unsized(body []byte) io.Reader { return io.MultiReader(bytes.NewReader(body)) }
