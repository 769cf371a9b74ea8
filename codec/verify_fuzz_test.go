// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"encoding/json"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/admission-dispatcher/dispatcher/codec"
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
	f.Fuzz(func(t *testing.T, body []byte, mutating bool) {
		if got, _ := judge(t, string(body), expect(codec.V1, mutating, codec.Strict)); got == allows {
			checkAllow(t, body)
		}
		judge(t, string(body), expect(codec.V1beta1, mutating, codec.Strict))
		judge(t, string(body), expect(codec.V1beta1, mutating, codec.APIServer))

		got, resp := judge(t, string(body), expect(codec.V1, mutating, codec.APIServer))
		switch want, known := apiServerReading(body, mutating); {
		case !known || got == want:
		case got == unusable && want == allows && mutating: // kube-apiserver reads the patch later
		default:
			t.Fatalf("APIServer: got %s %+v, want %s", got, resp, want)
		}
	})
}

// checkAllow reads an allow with and without regard to case.
func checkAllow(t *testing.T, body []byte) {
	t.Helper()
	var folded, exact admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &folded); err == nil && (folded.Response == nil || !folded.Response.Allowed || folded.Response.UID != "u1") {
		t.Fatal("encoding/json reads no allow")
	}
	if err := utiljson.Unmarshal(body, &exact); err == nil && (exact.Response == nil || !exact.Response.Allowed || exact.Response.UID != "u1") {
		t.Fatal("kube-apiserver reads no allow")
	}
	if !isStrictJSON(body) {
		t.Fatal("jsontext refuses what we accept")
	}
}

// apiServerReading is what k8s.io/apiserver's VerifyAdmissionResponse makes of a
// v1 answer. known is false where kube-apiserver cannot decode it: we do not look
// at the types of what we do not read.
func apiServerReading(body []byte, mutating bool) (j judgment, known bool) {
	var v admissionv1.AdmissionReview
	if err := utiljson.Unmarshal(body, &v); err != nil {
		return unusable, false
	}
	r := v.Response
	switch {
	case r == nil, r.UID != "u1", v.APIVersion != "admission.k8s.io/v1", v.Kind != "AdmissionReview":
		return unusable, true
	case mutating && (len(r.Patch) > 0) != (r.PatchType != nil), mutating && r.PatchType != nil && *r.PatchType == "":
		return unusable, true
	case !mutating && (len(r.Patch) > 0 || r.PatchType != nil):
		return unusable, true
	case r.Allowed:
		return allows, true
	}
	return denies, true
}
