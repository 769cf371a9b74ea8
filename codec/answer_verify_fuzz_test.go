// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"bytes"
	"encoding/json"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/harness/fuzz"
)

// FuzzVerify: whoever else reads an answer that a strict Verify takes for an
// allow reads an allow, and APIServer is kube-apiserver's reading.
func FuzzVerify(f *testing.F) {
	for _, body := range []string{
		in(`"allowed":true`), in(`"allowed":false,"status":{"code":403,"message":"no","details":{"causes":[{"message":"m"}]}}`),
		in(`"Allowed":true`), in(`"allowed":true,"allowed":false`), in(`"allowed":true,"patch":"W3t9XQ==","patchType":"JSONPatch"`),
		in(`"allowed":true,"patch":null,"patchType":""`), in(`"allowed":null,"warnings":["a",null],"auditAnnotations":{"a":"b"}`),
		in(`"allowed":true,"x":"\ud800"`), `{"response":{"allowed":true},"response":null}`, `null`, `{}`,
	} {
		f.Add([]byte(body), true)
		f.Add([]byte(body), false)
	}
	fuzz.Run(f, func(t testing.TB, body []byte, mutating bool) {
		if got, _ := judge(t, string(body), expect(codec.V1, mutating, codec.Strict)); got == allows {
			checkAllow(t, body)
		}
		judge(t, string(body), expect(codec.V1beta1, mutating, codec.Strict))

		for _, v := range []codec.Version{codec.V1, codec.V1beta1} {
			got, resp := judge(t, string(body), expect(v, mutating, codec.APIServer))
			switch want := apiServerReading(body, v, mutating); {
			case got == want:
			case got == unusable && want == allows && mutating: // kube-apiserver reads the patch later
			case got == unusable && isOurs(body): // documented
			default:
				t.Fatalf("APIServer: got %s %+v, want %s", got, resp, want)
			}
		}
	})
}

// isOurs reports whether an answer is one of those that only kube-apiserver reads:
// YAML with aliases.
func isOurs(body []byte) bool {
	return bytes.IndexByte(body, '&') >= 0 && bytes.IndexByte(body, '*') >= 0
}

// checkAllow reads an allow with and without regard to case.
func checkAllow(t testing.TB, body []byte) {
	t.Helper()
	var folded, exact admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &folded); err == nil && (folded.Response == nil || !folded.Response.Allowed || folded.Response.UID != "u1") {
		t.Fatal("encoding/json reads no allow")
	}
	if err := utiljson.Unmarshal(body, &exact); err == nil && (exact.Response == nil || !exact.Response.Allowed || exact.Response.UID != "u1") {
		t.Fatal("kube-apiserver reads no allow")
	}
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) && !isStrictJSON(body) { // else it is YAML or protobuf
		t.Fatal("jsontext refuses what we accept")
	}
}

// apiServerReading is what kube-apiserver makes of an answer: its decoder, and then
// what k8s.io/apiserver's VerifyAdmissionResponse does, which needs more modules
// than ours has.
func apiServerReading(body []byte, v codec.Version, mutating bool) judgment {
	if v == codec.V1beta1 {
		var review admissionv1beta1.AdmissionReview
		if _, _, err := apiServerDecoder.Decode(body, nil, &review); err != nil || review.Response == nil {
			return unusable
		}
		return verdictOf(review.Response.Allowed)
	}
	var review admissionv1.AdmissionReview
	if _, _, err := apiServerDecoder.Decode(body, nil, &review); err != nil {
		return unusable
	}
	r := review.Response
	switch {
	case r == nil, r.UID != "u1", review.GroupVersionKind() != admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"):
		return unusable
	case mutating && (len(r.Patch) > 0) != (r.PatchType != nil), mutating && r.PatchType != nil && *r.PatchType == "":
		return unusable
	case !mutating && (len(r.Patch) > 0 || r.PatchType != nil):
		return unusable
	}
	return verdictOf(r.Allowed)
}

func verdictOf(allowed bool) judgment {
	if allowed {
		return allows
	}
	return denies
}

// apiServerDecoder is made as k8s.io/apiserver's webhook.NewClientManager does.
var apiServerDecoder = newAPIServerDecoder()

func newAPIServerDecoder() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{admissionv1beta1.AddToScheme, admissionv1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(scheme).LegacyCodec(admissionv1beta1.SchemeGroupVersion, admissionv1.SchemeGroupVersion)
}
