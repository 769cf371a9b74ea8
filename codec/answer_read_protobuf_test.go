// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/harness/fuzz"
)

// text is a field of a protobuf message that is a string, bytes or a message of
// these parts; number is one that is a varint.
func text(field byte, parts ...string) string {
	content := strings.Join(parts, "")
	return string(binary.AppendUvarint([]byte{field<<3 | 2}, uint64(len(content)))) + content
}

func number(field byte, v uint64) string {
	return string(binary.AppendUvarint([]byte{field << 3}, v))
}

// enveloped puts an AdmissionReview into Kubernetes' envelope.
func enveloped(apiVersion, kind string, review ...string) string {
	return "k8s\x00" + text(1, text(1, apiVersion), text(2, kind)) + text(2, review...) + text(3) + text(4)
}

// inProtobuf puts the fields of a response into a v1 answer that fits.
func inProtobuf(response ...string) string {
	return enveloped("admission.k8s.io/v1", "AdmissionReview", text(2, text(1, "u1"), strings.Join(response, "")))
}

// TestVerifyProtobuf has the rows C1 to C28 that protobuf can spell.
func TestVerifyProtobuf(t *testing.T) {
	const v1, review = "admission.k8s.io/v1", "AdmissionReview"
	allow, deny, uid := number(2, 1), number(2, 0), text(1, "u1")
	op, jsonPatch := text(4, `[{"op":"add","path":"/a","value":1}]`), text(5, "JSONPatch")
	validating, mutating := expect(codec.V1, false, codec.Strict), expect(codec.V1, true, codec.Strict)
	beta := expect(codec.V1beta1, false, codec.Strict)
	tests := []struct {
		name, body        string
		want              codec.Expectation
		strict, apiServer judgment
	}{
		{"C1 allow", inProtobuf(allow), validating, allows, allows},
		{"C1 deny", inProtobuf(deny), validating, denies, denies},
		{"C1 deny with a status", inProtobuf(deny, text(3, text(1), text(2, "Failure"), number(6, 403))), validating, denies, denies},
		{"C2 uid missing", enveloped(v1, review, text(2, allow)), validating, unusable, unusable},
		{"C2 uid other", enveloped(v1, review, text(2, text(1, "u2"), allow)), validating, unusable, unusable},
		{"C2 kind other", enveloped(v1, "Status", text(2, uid, allow)), validating, unusable, unusable},
		{"C2 version other", enveloped("admission.k8s.io/v1beta1", review, text(2, uid, allow)), validating, unusable, unusable},
		{"C2 no type", "k8s\x00" + text(2, text(2, uid, allow)), validating, unusable, allows},
		{"C2 no type, v1beta1", "k8s\x00" + text(2, text(2, uid, allow)), beta, unusable, allows},
		{"C3 no type", "k8s\x00" + text(2, text(2, uid, deny)), validating, refused, denies},
		{"C3 no type, v1beta1", "k8s\x00" + text(2, text(2, uid, deny)), beta, refused, denies},
		{"C3 no type, v1beta1, allowed left out", "k8s\x00" + text(2, text(2, uid)), beta, refused, denies},
		{"C3 uid other", enveloped(v1, review, text(2, text(1, "u2"), deny)), validating, refused, unusable},
		{"C3 version other", enveloped("admission.k8s.io/v1beta1", review, text(2, uid, deny)), validating, refused, unusable},
		{"C3 message of a wrong type", inProtobuf(deny, text(3, number(3, 1))), validating, refused, unusable},
		{"C3 code of a wrong type", inProtobuf(deny, text(3, text(6, "403"))), validating, refused, unusable},
		{"C3 message not UTF-8", inProtobuf(deny, text(3, text(3, "\xff"))), validating, refused, denies},
		{"C3 uid other, allowed left out", enveloped(v1, review, text(2, text(1, "u2"))), validating, refused, unusable},
		{"C4 response absent", enveloped(v1, review), validating, unusable, unusable},
		{"C4 raw absent", "k8s\x00" + text(1, text(1, v1), text(2, review)), validating, unusable, unusable},
		{"C5 allowed twice, true", inProtobuf(allow, allow), validating, unusable, allows},
		{"C5 allowed twice, false first", inProtobuf(deny, allow), validating, refused, allows},
		{"C5 allowed twice, false last", inProtobuf(allow, deny), validating, refused, denies},
		{"C5 response twice, merged", enveloped(v1, review, text(2, uid, allow), text(2)), validating, unusable, allows},
		{"C5 response twice, a denial", enveloped(v1, review, text(2, uid, deny), text(2, allow)), validating, refused, allows},
		{"C5 raw twice, the last stands", inProtobuf(deny) + text(2, text(2, uid, allow)), validating, refused, allows},
		{"C5 raw twice, the last leaves allowed out", inProtobuf(allow) + text(2, text(2, uid)), validating, refused, denies},
		{"C5 raw twice, the last leaves allowed out, uid other", inProtobuf(allow) + text(2, text(2, text(1, "u2"))), validating, refused, unusable},
		{"C5 raw twice, the last leaves the response out", inProtobuf(allow) + text(2), validating, unusable, unusable},
		{"C5 status twice", inProtobuf(deny, text(3), text(3)), validating, refused, denies},
		{"C5 code twice", inProtobuf(deny, text(3, number(6, 403), number(6, 403))), validating, refused, denies},
		{"C7 allowed a string", inProtobuf(text(2, "true")), validating, unusable, unusable},
		{"C7 allowed is 2", inProtobuf(number(2, 2)), validating, unusable, allows},
		{"C8 allowed absent", inProtobuf(), validating, denies, denies},
		{"C9 empty", "", validating, unusable, unusable},
		{"C10 JSON", in(`"allowed":true`), validating, allows, allows},
		{"C9 no envelope", text(2, uid, allow), validating, unusable, unusable},
		{"C9 truncated", inProtobuf(deny)[:40], validating, unusable, unusable},
		{"C9 trailing bytes", inProtobuf(deny) + "x", validating, refused, unusable},
		{"C9 field number 0", inProtobuf(allow) + "\x02\x00", validating, unusable, unusable},
		{"C9 a length is missing", inProtobuf(allow) + "\x52", validating, unusable, unusable},
		{"C9 the highest field number", inProtobuf(allow) + string(binary.AppendUvarint(nil, (1<<29-1)<<3)) + "\x00", validating, allows, allows},
		{"C9 a higher field number", inProtobuf(allow) + string(binary.AppendUvarint(nil, 1<<29<<3)) + "\x00", validating, unusable, unusable},
		{"C9 a group", inProtobuf(allow, "\x53\x54"), validating, unusable, unusable},
		{"C9 a length beyond 64 bits", inProtobuf(allow) + "\x52\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", validating, unusable, unusable},
		{"C9 warning not UTF-8", inProtobuf(allow, text(7, "\xff")), validating, unusable, allows},
		{"C10 its content named", strings.TrimSuffix(inProtobuf(allow), text(4)) + text(4, codec.MediaTypeProtobuf), validating, allows, allows},
		{"C10 another content", strings.TrimSuffix(inProtobuf(allow), text(4)) + text(4, "application/json"), validating, unusable, allows},
		{"C13 an allow with a patch", inProtobuf(allow, op), validating, unusable, unusable},
		{"C13 a denial with a patch", inProtobuf(deny, op, jsonPatch), validating, refused, unusable},
		{"C13 an empty patch", inProtobuf(allow, text(4)), validating, allows, allows},
		{"C13 an empty patch type", inProtobuf(allow, text(5)), validating, unusable, unusable},
		{"C14 patch without type", inProtobuf(allow, op), mutating, unusable, unusable},
		{"C14 type without patch", inProtobuf(allow, jsonPatch), mutating, unusable, unusable},
		{"C14 other type", inProtobuf(allow, op, text(5, "MergePatch")), mutating, unusable, unusable},
		{"C14 base64, which protobuf does not need", inProtobuf(allow, text(4, b64(`[{}]`)), jsonPatch), mutating, unusable, unusable},
		{"C15 empty array", inProtobuf(allow, text(4, `[]`), jsonPatch), mutating, allows, allows},
		{"C15 none", inProtobuf(allow), mutating, allows, allows},
		{"C20 a denial with a patch", inProtobuf(deny, op, jsonPatch), mutating, denies, denies},
		{"C28 v1beta1", enveloped("admission.k8s.io/v1beta1", review, text(2, uid, allow)), beta, allows, allows},
		{"unknown fields", inProtobuf(allow, text(15, "x"), number(14, 7), "\x6d1234", "\x6112345678") + text(9, "x"), validating, allows, allows},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, _ := judge(t, tt.body, tt.want); got != tt.strict {
				t.Errorf("Strict: got %s, want %s", got, tt.strict)
			}
			tt.want.Compat = codec.APIServer
			if got, _ := judge(t, tt.body, tt.want); got != tt.apiServer {
				t.Errorf("APIServer: got %s, want %s", got, tt.apiServer)
			}
		})
	}
}

// An answer is judged alike in JSON and in protobuf, and cleaned alike.
func TestVerifyProtobufIsVerifyJSON(t *testing.T) {
	oracle := kubernetesProtobuf(t)
	rapid.Check(t, func(t *rapid.T) {
		typed := anyAnswer(t)
		asJSON, err := json.Marshal(typed)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(asJSON, typed); err != nil { // what is not UTF-8 is replaced
			t.Fatal(err)
		}
		var asProtobuf bytes.Buffer
		if err := oracle.Encode(typed, &asProtobuf); err != nil {
			t.Fatal(err)
		}
		for _, compat := range []codec.Compatibility{codec.Strict, codec.APIServer} {
			mutating := rapid.Bool().Draw(t, "mutating")
			want, wantErr := codec.Verify(asJSON, expect(codec.V1, mutating, compat))
			got, gotErr := codec.Verify(asProtobuf.Bytes(), expect(codec.V1, mutating, compat))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("(-JSON +protobuf)\n%s", diff)
			}
			if diff := cmp.Diff(wantErr, gotErr); diff != "" {
				t.Fatalf("(-JSON +protobuf)\n%s", diff)
			}
		}
	})
}

// anyAnswer draws an answer of which most is in order.
func anyAnswer(t *rapid.T) *admissionv1.AdmissionReview {
	resp := anyResponse(t)
	if rapid.Bool().Draw(t, "operations") {
		resp.Patch = []byte(`[{"op":"remove","path":"/a"}]`)
	}
	typed := typedResponse(rapid.SampledFrom([]string{"u1", "u1", "u1", "u2", ""}).Draw(t, "uid"), &resp)
	if rapid.IntRange(0, 3).Draw(t, "patchType") == 0 {
		typed.PatchType = nil
	}
	return &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview", APIVersion: "admission.k8s.io/v1"},
		Response: typed,
	}
}

// FuzzVerifyProtobuf: whatever a strict Verify takes for an allow or a denial is
// the same to Kubernetes' own types, and it borrows nothing.
func FuzzVerifyProtobuf(f *testing.F) {
	oracle := kubernetesProtobuf(f)
	patched := inProtobuf(number(2, 1), text(4, `[{}]`), text(5, "JSONPatch"))
	denied := inProtobuf(number(2, 0), text(3, text(3, "no"), text(4, "r"), number(6, 403), text(5, text(4, text(1, "c"), text(2, "m")), number(5, 3))), text(6, text(1, "k"), text(2, "v")), text(7, "w"))
	for _, body := range []string{inProtobuf(number(2, 1)), patched, denied, inProtobuf(), "k8s\x00", ""} {
		f.Add([]byte(body), true)
		f.Add([]byte(body), false)
	}
	fuzz.Run(f, func(t testing.TB, body []byte, mutating bool) {
		judge(t, string(body), expect(codec.V1, mutating, codec.APIServer))
		judge(t, string(body), expect(codec.V1beta1, mutating, codec.Strict))
		got, resp := judge(t, string(body), expect(codec.V1, mutating, codec.Strict))
		if got != allows && got != denies {
			return
		}
		typed, err := decodeProtobuf(oracle, body)
		if err != nil {
			return // in what we do not read
		}
		if typed.Response == nil || typed.Response.Allowed != resp.Allowed || typed.Response.UID != types.UID("u1") {
			t.Fatalf("we read %+v, Kubernetes %+v", resp, typed.Response)
		}
		if resp.Patch != nil && !bytes.Equal(resp.Patch, typed.Response.Patch) {
			t.Fatalf("we read the patch %q, Kubernetes %q", resp.Patch, typed.Response.Patch)
		}
		if s := typed.Response.Result; s != nil && !resp.Allowed && s.Code >= 400 && s.Code < 600 && resp.Code != s.Code {
			t.Fatalf("we read the code %d, Kubernetes %d", resp.Code, s.Code)
		}
	})
}

// decodeProtobuf reads an AdmissionReview as Kubernetes does.
func decodeProtobuf(oracle runtime.Decoder, body []byte) (*admissionv1.AdmissionReview, error) {
	var typed admissionv1.AdmissionReview
	_, _, err := oracle.Decode(body, nil, &typed)
	return &typed, err
}

// Nothing of one part gets into the next.
func TestVerifyProtobufKeepsPartsApart(t *testing.T) {
	cause := func(parts ...string) string { return text(4, parts...) }
	body := inProtobuf(number(2, 0), text(3, text(5, cause(text(1, "r"), text(2, "m"), text(3, "f")), strings.Repeat(cause(text(2, "n")), 20))),
		text(6, text(1, "a"), text(2, "v")), text(6, text(1, "b")), text(7, "w"))
	_, resp := judge(t, body, expect(codec.V1, false, codec.Strict))
	if len(resp.Causes) != 16 || resp.Causes[0] != (codec.Cause{Type: "r", Field: "f", Message: "m"}) || resp.Causes[15] != (codec.Cause{Message: "n"}) {
		t.Errorf("got %+v", resp.Causes)
	}
	if diff := cmp.Diff([]codec.Annotation{{Key: "a", Value: "v"}, {Key: "b"}}, resp.Annotations); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	_, resp = judge(t, body+text(2, text(2, text(1, "u1"), number(2, 0))), expect(codec.V1, false, codec.APIServer))
	if diff := cmp.Diff(codec.Response{Code: 400}, resp); diff != "" {
		t.Errorf("of a raw that another replaces something stays (-want +got)\n%s", diff)
	}
}

func TestVerifyProtobufBorrowsNothing(t *testing.T) {
	body := []byte(inProtobuf(number(2, 1), text(4, `[{}]`), text(5, "JSONPatch"), text(7, "warning"), text(6, text(1, "k"), text(2, "v"))))
	resp, err := codec.Verify(body, expect(codec.V1, true, codec.Strict))
	if err != nil {
		t.Fatal(err)
	}
	clear(body)
	want := codec.Response{Allowed: true, Patch: []byte(`[{}]`), Warnings: []string{"warning"}, Annotations: []codec.Annotation{{Key: "k", Value: "v"}}}
	if diff := cmp.Diff(want, resp); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestVerifyProtobufAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("with the race detector, pools drop what they like")
	}
	body, want := []byte(inProtobuf(number(2, 1))), expect(codec.V1, false, codec.Strict)
	n := testing.AllocsPerRun(100, func() {
		if _, err := codec.Verify(body, want); err != nil {
			t.Fatal(err)
		}
	})
	if n > 1 {
		t.Errorf("a plain allow takes %v allocations", n)
	}
}
