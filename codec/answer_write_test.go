// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/codec"
)

func TestAppendReview(t *testing.T) {
	const (
		v1      = "admission.k8s.io/v1"
		v1beta1 = "admission.k8s.io/v1beta1"
	)
	first := `{"apiVersion": "admission.k8s.io/v1" ,"kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","resource":{"resource":"pods"},"object": {"a":1.0} ,"x":[ ]}}`
	last := `{"request":{"object":null,"uid":"u","operation":"CREATE","resource":{"resource":"pods"}},"kind":"AdmissionReview","apiVersion":"admission.k8s.io\/v1"}`
	absent := strings.Replace(last, `"object":null,`, ``, 1)
	tests := []struct {
		name, body string
		version    codec.Version
		object     string
		want       string
	}{
		{"B15 as received", first, codec.V1, "", first},
		{"other version", first, codec.V1beta1, "", strings.Replace(first, v1, v1beta1, 1)},
		{"other object", first, codec.V1, `{"b":2}`, strings.Replace(first, `{"a":1.0}`, `{"b":2}`, 1)},
		{"both", first, codec.V1beta1, `{"b":2}`, strings.NewReplacer(v1, v1beta1, `{"a":1.0}`, `{"b":2}`).Replace(first)},
		{"both, the version last", last, codec.V1beta1, `{"b":2}`, strings.NewReplacer(`admission.k8s.io\/v1`, v1beta1, `null`, `{"b":2}`).Replace(last)},
		{"no object to replace", absent, codec.V1beta1, "", strings.Replace(absent, `admission.k8s.io\/v1`, v1beta1, 1)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var object []byte
			if tt.object != "" {
				object = []byte(tt.object)
			}
			got := mustDecode(t, tt.body).AppendReview([]byte("prefix"), tt.version, object)
			if string(got) != "prefix"+tt.want {
				t.Errorf("got %s\nwant %s", got, tt.want)
			}
		})
	}
	t.Run("v1beta1 to v1", func(t *testing.T) {
		beta := strings.Replace(first, v1, v1beta1, 1)
		if got := mustDecode(t, beta).AppendReview(nil, codec.V1, nil); string(got) != first {
			t.Errorf("got %s\nwant %s", got, first)
		}
	})
}

func TestAppendAnswerPlainAllowIsFrozen(t *testing.T) {
	const want = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u1","allowed":true}}`
	buf := make([]byte, 0, len(want))
	resp := codec.Response{Allowed: true}
	if got := codec.AppendAnswer(buf, codec.V1, []byte("u1"), &resp); string(got) != want {
		t.Errorf("got %s", got)
	}
	beta := strings.Replace(want, "/v1", "/v1beta1", 1)
	if got := codec.AppendAnswer(nil, codec.V1beta1, []byte("u1"), &resp); string(got) != beta {
		t.Errorf("got %s", got)
	}
	uid := []byte("u1")
	if n := testing.AllocsPerRun(100, func() { codec.AppendAnswer(buf[:0], codec.V1, uid, &resp) }); n > 0 {
		t.Errorf("it takes %v allocations", n)
	}
}

func TestAppendAnswerDenial(t *testing.T) {
	resp := codec.Response{
		Code: 403, Reason: "Forbidden", Message: "no\n\"<\x00\xff>\u2028", RetryAfterSeconds: 3,
		Causes: []codec.Cause{{Type: "Denied", Field: "w.example.com", Message: "no"}, {Type: "Timeout"}},
	}
	const want = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u1","allowed":false,` +
		`"status":{"metadata":{},"status":"Failure","message":"no\n\"<\u0000` + "\uFFFD>\u2028" + `","reason":"Forbidden",` +
		`"details":{"causes":[{"reason":"Denied","message":"no","field":"w.example.com"},{"reason":"Timeout"}],"retryAfterSeconds":3},"code":403}}}`
	if got := codec.AppendAnswer(nil, codec.V1, []byte("u1"), &resp); string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestAppendAnswerProperty: Kubernetes' own types read back what went in.
func TestAppendAnswerDetails(t *testing.T) {
	for want, resp := range map[string]codec.Response{
		`"details":{"causes":[{"reason":"","field":"f"}]}`:                       {Code: 403, Causes: []codec.Cause{{Field: "f"}}},
		`"details":{"retryAfterSeconds":3}`:                                      {Code: 429, RetryAfterSeconds: 3},
		`"details":{"causes":[{"reason":"","field":"f"}],"retryAfterSeconds":3}`: {Code: 429, RetryAfterSeconds: 3, Causes: []codec.Cause{{Field: "f"}}},
	} {
		got := codec.AppendAnswer(nil, codec.V1, []byte("u"), &resp)
		if !json.Valid(got) || !strings.Contains(string(got), want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestAppendAnswerProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		resp := anyResponse(t)
		uid := rapid.String().Draw(t, "uid")
		var v1 admissionv1.AdmissionReview
		unmarshal(t, codec.AppendAnswer(nil, codec.V1, []byte(uid), &resp), &v1)
		want := admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview", APIVersion: "admission.k8s.io/v1"},
			Response: typedResponse(uid, &resp),
		}
		if diff := cmp.Diff(want, v1); diff != "" {
			t.Fatalf("v1 (-want +got)\n%s", diff)
		}
		var beta admissionv1beta1.AdmissionReview
		unmarshal(t, codec.AppendAnswer(nil, codec.V1beta1, []byte(uid), &resp), &beta)
		if beta.APIVersion != "admission.k8s.io/v1beta1" {
			t.Fatalf("v1beta1: apiVersion is %q", beta.APIVersion)
		}
		converted := admissionv1beta1.AdmissionResponse{
			UID: want.Response.UID, Allowed: want.Response.Allowed, Result: want.Response.Result, Patch: want.Response.Patch,
			PatchType: (*admissionv1beta1.PatchType)(want.Response.PatchType), AuditAnnotations: want.Response.AuditAnnotations, Warnings: want.Response.Warnings,
		}
		if diff := cmp.Diff(&converted, beta.Response); diff != "" {
			t.Fatalf("v1beta1 (-want +got)\n%s", diff)
		}
	})
}

func unmarshal(t *rapid.T, data []byte, into any) {
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
}

// anyResponse draws a Response whose texts may be anything, UTF-8 or not.
func anyResponse(t *rapid.T) codec.Response {
	text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	resp := codec.Response{
		Allowed:  rapid.Bool().Draw(t, "allowed"),
		Warnings: rapid.SliceOf(text).Draw(t, "warnings"),
		Patch:    rapid.SliceOf(rapid.Byte()).Draw(t, "patch"),
	}
	for key, value := range rapid.MapOf(rapid.String(), text).Draw(t, "annotations") {
		resp.Annotations = append(resp.Annotations, codec.Annotation{Key: key, Value: value})
	}
	if resp.Allowed {
		return resp
	}
	resp.Code = rapid.Int32Min(1).Draw(t, "code")
	resp.Reason, resp.Message = text.Draw(t, "reason"), text.Draw(t, "message")
	resp.RetryAfterSeconds = rapid.Int32().Draw(t, "retryAfterSeconds")
	for range rapid.IntRange(0, 3).Draw(t, "causes") {
		resp.Causes = append(resp.Causes, codec.Cause{Type: text.Draw(t, "type"), Field: text.Draw(t, "field"), Message: text.Draw(t, "cause")})
	}
	return resp
}

// typedResponse is what resp says, in Kubernetes' type.
func typedResponse(uid string, resp *codec.Response) *admissionv1.AdmissionResponse {
	want := &admissionv1.AdmissionResponse{UID: types.UID(valid(uid)), Allowed: resp.Allowed}
	if len(resp.Patch) > 0 {
		json := admissionv1.PatchTypeJSONPatch
		want.Patch, want.PatchType = resp.Patch, &json
	}
	for _, w := range resp.Warnings {
		want.Warnings = append(want.Warnings, valid(w))
	}
	for _, a := range resp.Annotations {
		if want.AuditAnnotations == nil {
			want.AuditAnnotations = map[string]string{}
		}
		want.AuditAnnotations[valid(a.Key)] = valid(a.Value)
	}
	if !resp.Allowed {
		want.Result = typedStatus(resp)
	}
	return want
}

func typedStatus(resp *codec.Response) *metav1.Status {
	status := &metav1.Status{Status: metav1.StatusFailure, Message: valid(resp.Message), Reason: metav1.StatusReason(valid(resp.Reason)), Code: resp.Code}
	if len(resp.Causes) == 0 && resp.RetryAfterSeconds == 0 {
		return status
	}
	status.Details = &metav1.StatusDetails{RetryAfterSeconds: resp.RetryAfterSeconds}
	for _, c := range resp.Causes {
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Type: metav1.CauseType(valid(c.Type)), Field: valid(c.Field), Message: valid(c.Message)})
	}
	return status
}

// valid is how Go's encoder writes text that is not UTF-8.
func valid(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
	}
	return b.String()
}
