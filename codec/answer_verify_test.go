// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// judgment is what an answer amounts to, in one word.
type judgment string

const (
	allows judgment = "allow"
	denies judgment = "deny"
	// unusable is for the failure policy, refused is a Refusal.
	unusable judgment = "unusable"
	refused  judgment = "refused"
)

func judge(t testing.TB, body string, want codec.Expectation) (judgment, codec.Response) {
	t.Helper()
	resp, err := codec.Verify([]byte(body), want)
	var bad *codec.AnswerError
	switch {
	case err == nil && resp.Allowed:
		return allows, resp
	case err == nil:
		return denies, resp
	case !errors.As(err, &bad):
		t.Fatalf("got %T, want an AnswerError", err)
	case bad.Denies:
		return refused, resp
	}
	return unusable, resp
}

func expect(v codec.Version, mutating bool, compat codec.Compatibility) codec.Expectation {
	return codec.Expectation{UID: []byte("u1"), Version: v, Mutating: mutating, Compat: compat}
}

// in puts the members of a response into a v1 answer that fits.
func in(response string) string {
	return `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u1",` + response + `}}`
}

func inBeta(response string) string {
	return strings.Replace(in(response), "/v1", "/v1beta1", 1)
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// TestVerify has a row for each answer: how a strict reader and kube-apiserver
// judge it.
func TestVerify(t *testing.T) {
	const (
		allow = `"allowed":true`
		deny  = `"allowed":false`
		typed = `"patchType":"JSONPatch"`
		// yamlAnswer lacks the rest of the response.
		yamlAnswer = "kind: AdmissionReview\napiVersion: admission.k8s.io/v1\nresponse: {uid: u1, "
		head       = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1",`
	)
	patch := func(s string) string { return `"patch":"` + b64(s) + `"` }
	op := patch(`[{"op":"remove","path":"/a"}]`)
	validating, mutating := expect(codec.V1, false, codec.Strict), expect(codec.V1, true, codec.Strict)
	beta, betaMutating := expect(codec.V1beta1, false, codec.Strict), expect(codec.V1beta1, true, codec.Strict)

	tests := []struct {
		name, body string
		want       codec.Expectation
		strict     judgment
		apiServer  judgment
	}{
		{"C1 allow", in(allow), validating, allows, allows},
		{"C1 deny", in(deny), validating, denies, denies},
		{"C1 unknown fields", in(`"x":[{}],` + allow + `,"y":1`), validating, allows, allows},
		{"C1 with the request", `{"request":{"uid":"x"},` + in(allow)[1:], validating, allows, allows},
		{"C2 uid missing", head + `"response":{` + allow + `}}`, validating, unusable, unusable},
		{"C2 uid other", strings.Replace(in(allow), "u1", "u2", 1), validating, unusable, unusable},
		{"C2 uid a number", strings.Replace(in(allow), `"u1"`, `1`, 1), validating, unusable, unusable},
		{"C2 kind missing", strings.Replace(in(allow), `"kind":"AdmissionReview",`, ``, 1), validating, unusable, unusable},
		{"C2 kind other", strings.Replace(in(allow), `"AdmissionReview"`, `"Status"`, 1), validating, unusable, unusable},
		{"C2 apiVersion missing", strings.Replace(in(allow), `"apiVersion":"admission.k8s.io/v1",`, ``, 1), validating, unusable, unusable},
		{"C2 apiVersion other", inBeta(allow), validating, unusable, unusable},
		{"C3 uid missing", head + `"response":{` + deny + `}}`, validating, refused, unusable},
		{"C3 uid other", strings.Replace(in(deny), "u1", "u2", 1), validating, refused, unusable},
		{"C3 kind missing", strings.Replace(in(deny), `"kind":"AdmissionReview",`, ``, 1), validating, refused, unusable},
		{"C3 apiVersion other", inBeta(deny), mutating, refused, unusable},
		{"C3 message of a wrong type", in(deny + `,"status":{"message":1}`), validating, refused, unusable},
		{"C3 status a string", in(deny + `,"status":"no"`), validating, refused, unusable},
		{"C3 code a fraction", in(deny + `,"status":{"code":403.5}`), validating, refused, unusable},
		{"C3 warnings a string", in(`"warnings":"w",` + deny), validating, refused, unusable},
		{"C4 response null", head + `"response":null}`, validating, unusable, unusable},
		{"C4 response absent", head[:len(head)-1] + `}`, validating, unusable, unusable},
		{"C4 response an array", head + `"response":[]}`, validating, unusable, unusable},
		{"C4 null", `null`, validating, unusable, unusable},
		{"C4 a Status", `{"kind":"Status","apiVersion":"v1","status":"Failure"}`, validating, unusable, unusable},
		{"C5 allowed twice, true", in(allow + `,` + allow), validating, unusable, allows},
		{"C5 allowed twice, false first", in(deny + `,` + allow), validating, refused, allows},
		{"C5 allowed twice, false last", in(allow + `,` + deny), validating, refused, denies},
		{"C5 allowed twice, escaped", in(deny + `,"\u0061llowed":true`), validating, refused, allows},
		{"C5 response twice, allows", head + `"response":{"uid":"u1",` + allow + `},"response":{` + allow + `}}`, validating, unusable, allows},
		{"C5 response twice, a denial", head + `"response":{"uid":"u1",` + deny + `},"response":{` + allow + `}}`, validating, refused, allows},
		{"C5 response twice, the last one merged", head + `"response":{"uid":"u1",` + allow + `},"response":{}}`, validating, unusable, allows},
		{"C5 response twice, null last", head + `"response":{"uid":"u1",` + deny + `},"response":null}`, validating, refused, unusable},
		{"C5 response, null, response", head + `"response":{"uid":"u1",` + allow + `},"response":null,"response":{"uid":"u1"}}`, validating, refused, denies},
		{"C5 uid twice, a denial", in(deny + `,"uid":"u1"`), validating, refused, denies},
		{"C5 uid twice, an allow", in(allow + `,"uid":"u1"`), validating, unusable, allows},
		{"C5 kind twice", `{"kind":"AdmissionReview",` + in(allow)[1:], validating, unusable, allows},
		{"C5 code twice", in(deny + `,"status":{"code":403,"code":403}`), validating, refused, denies},
		{"C6 Allowed true", in(`"Allowed":true`), validating, refused, denies},
		{"C6 Allowed false", in(`"Allowed":false`), validating, refused, denies},
		{"C6 Allowed with a fit of the uid", strings.Replace(in(`"ALLOWED":true`), "u1", "u2", 1), validating, refused, unusable},
		{"C6 Response", strings.Replace(in(allow), `"response"`, `"Response"`, 1), validating, refused, unusable},
		{"C6 long s in response", strings.Replace(in(allow), `"response"`, `"re\u017fponse"`, 1), validating, refused, unusable},
		{"C6 both, true", in(allow + `,"Allowed":true`), validating, unusable, allows},
		{"C6 both, the variant false", in(allow + `,"Allowed":false`), validating, refused, allows},
		{"C6 both, the exact one false", in(deny + `,"Allowed":true`), validating, refused, denies},
		{"C6 both, the variant false behind a space", in(allow + `,"Allowed" : false`), validating, refused, allows},
		{"C6 false, a variant, true", in(deny + `,"Allowed":true,"allowed":true`), validating, refused, allows},
		{"C6 Response that denies, and a response", `{"Response":{"allowed":false},` + in(allow)[1:], validating, refused, allows},
		{"C6 response that denies, Response, response", head + `"response":{"uid":"u1",` + deny + `},"Response":{` + allow + `},"response":{` + allow + `}}`, validating, refused, allows},
		{"C6 variant of uid, a denial", in(deny + `,"UID":"u1"`), validating, refused, denies},
		{"C6 variant of code, an allow", in(allow + `,"status":{"Code":403}`), validating, unusable, allows},
		{"C7 allowed a string", in(`"allowed":"true"`), validating, unusable, unusable},
		{"C7 allowed a number", in(`"allowed":0`), validating, unusable, unusable},
		{"C7 code out of range, an allow", in(allow + `,"status":{"code":2147483648}`), validating, unusable, unusable},
		{"C7 code out of range, a denial", in(deny + `,"status":{"code":2147483648}`), validating, refused, unusable},
		{"C7 retryAfterSeconds out of range", in(allow + `,"status":{"details":{"retryAfterSeconds":99999999999}}`), validating, unusable, unusable},
		{"C7 status.details.name", in(allow + `,"status":{"details":{"name":1}}`), validating, unusable, unusable},
		{"C7 status.details.uid", in(allow + `,"status":{"details":{"uid":{}}}`), validating, unusable, unusable},
		{"C7 status.apiVersion", in(allow + `,"status":{"apiVersion":1}`), validating, unusable, unusable},
		{"C7 status.metadata", in(allow + `,"status":{"metadata":{"remainingItemCount":"1"}}`), validating, unusable, unusable},
		{"C7 status.metadata, a denial", in(deny + `,"status":{"metadata":{"continue":1}}`), validating, refused, unusable},
		{"C7 request.uid", `{"request":{"uid":1},` + in(allow)[1:], validating, unusable, unusable},
		{"C7 request.userInfo.extra", `{"request":{"userInfo":{"extra":{"a":"b"}}},` + in(allow)[1:], validating, unusable, unusable},
		{"C7 request.uid an array", `{"request":{"uid":[]},` + in(allow)[1:], validating, unusable, unusable},
		{"C7 request.uid is true", `{"request":{"uid":true},` + in(allow)[1:], validating, unusable, unusable},
		{"C7 request.dryRun", `{"request":{"dryRun":"true"},` + in(allow)[1:], validating, unusable, unusable},
		{"C7 request.kind a string", `{"request":{"kind":"Pod"},` + in(allow)[1:], validating, unusable, unusable},
		{"C7 request.userInfo.groups an object", `{"request":{"userInfo":{"groups":{}}},` + in(allow)[1:], validating, unusable, unusable},
		{"C7 all of the request", `{"request":{"dryRun":true,"uid":"u","kind":{"kind":"Pod"},"userInfo":{"groups":["a"],"extra":{"a":["b"]}}},` + in(allow + `,"status":{"metadata":{"remainingItemCount":1}}`)[1:], validating, allows, allows},
		{"C7 request.dryRun is false", `{"request":{"dryRun":false},` + in(allow)[1:], validating, allows, allows},
		{"C7 request.object", `{"request":{"object":[1]},` + in(allow)[1:], validating, allows, allows},
		{"C7 nulls", `{"request":{"uid":null,"userInfo":{"groups":[null]}},` + in(allow + `,"status":{"metadata":null,"details":{"name":null}}`)[1:], validating, allows, allows},
		{"C7 allowed an object", in(`"allowed":{}`), validating, unusable, unusable},
		{"C8 allowed absent", in(`"status":{}`), validating, denies, denies},
		{"C8 allowed null", in(`"allowed":null`), validating, denies, denies},
		{"C8 allowed left out, a case variant", in(`"status":{},"Status":{}`), validating, refused, denies},
		{"C8 allowed null, a key twice", in(`"allowed":null,"warnings":[],"warnings":[]`), validating, refused, denies},
		{"C8 allowed left out, a key twice, uid other", strings.Replace(in(`"warnings":[],"warnings":[]`), "u1", "u2", 1), validating, unusable, unusable},
		{"C2 a case variant of kind names another", `{"Kind":"Status",` + in(allow)[1:], validating, unusable, allows},
		{"C2 a later case variant of kind names another", strings.Replace(in(allow), `"response"`, `"Kind":"Status","response"`, 1), validating, unusable, unusable},
		{"C2 a case variant of kind is a number", `{"Kind":1,` + in(allow)[1:], validating, unusable, unusable},
		{"C9 empty", ``, validating, unusable, unusable},
		{"C9 trailing bytes", in(allow) + `x`, validating, unusable, unusable},
		{"C9 trailing bytes, a denial", in(deny) + `x`, validating, refused, unusable},
		{"C9 comment in front of a denial", `// no` + "\n" + in(deny), validating, refused, unusable},
		{"C9 comment in a denial", in(`/* no */` + deny), validating, refused, unusable},
		{"C9 comma too many in a denial", in(deny + `,`), validating, refused, unusable},
		{"C9 a denial cut off", in(deny)[:len(in(deny))-2], validating, refused, unusable},
		{"C9 an allow that quotes a denial, cut off", in(allow + `,"x":"{\"allowed\":false}"`)[:len(in(allow))+20], validating, unusable, unusable},
		{"C9 second document", in(allow) + in(allow), validating, unusable, unusable},
		{"C10 byte order mark", "\uFEFF" + in(allow), validating, allows, allows},
		{"C9 comment", in(allow) + `//`, validating, unusable, unusable},
		{"C9 NaN", in(allow + `,"x":NaN`), validating, unusable, unusable},
		{"C9 invalid UTF-8", in(allow + ",\"x\":\"\xff\""), validating, unusable, allows},
		{"C9 invalid UTF-8, a denial", in(deny + ",\"x\":\"\xff\""), validating, refused, denies},
		{"C9 invalid UTF-8, allowed left out", in("\"x\":\"\xff\""), validating, refused, denies},
		{"C9 lone surrogate", in(allow + `,"x":"\ud800"`), validating, unusable, allows},
		{"C9 lone surrogate, a denial", in(deny + `,"x":"\ud800"`), validating, refused, denies},
		{"C9 lone surrogate and another uid, allowed left out", strings.Replace(in(`"x":"\ud800"`), "u1", "u2", 1), validating, unusable, unusable},
		{"C10 YAML", yamlAnswer + "allowed: true}", validating, allows, allows},
		{"C10 YAML, a denial", yamlAnswer + "allowed: no}", validating, denies, denies},
		{"C10 YAML, allowed left out", yamlAnswer + "}", validating, denies, denies},
		{"C10 YAML, allowed twice", yamlAnswer + "allowed: false, allowed: true}", validating, refused, allows},
		{"C10 YAML with an alias, a denial", yamlAnswer + "allowed: false, x: &a 1, y: *a}", validating, refused, unusable},
		{"C10 YAML with an ampersand", yamlAnswer + `allowed: true, x: "&"}`, validating, allows, allows},
		{"C10 YAML with an asterisk", yamlAnswer + `allowed: true, x: "*"}`, validating, allows, allows},
		{"C10 YAML that begins with an anchor", "&a " + yamlAnswer + "allowed: true}\nx: *a", validating, unusable, unusable},
		{"C10 YAML of 64 KiB", yamlAnswer + "allowed: true}" + strings.Repeat(" ", 64<<10-len(yamlAnswer+"allowed: true}")), validating, allows, allows},
		{"C10 YAML of more than 64 KiB", yamlAnswer + "allowed: true}" + strings.Repeat(" ", 64<<10-len(yamlAnswer+"allowed: true}")+1), validating, unusable, unusable},
		{"C10 YAML of another kind", "kind: Status\napiVersion: v1", validating, unusable, unusable},
		{"C10 HTML", "<html>", validating, unusable, unusable},
		{"C13 an allow with a patch", in(allow + `,` + op), validating, unusable, unusable},
		{"C13 an allow with a patch type", in(allow + `,` + typed), validating, unusable, unusable},
		{"C13 a denial with a patch", in(deny + `,` + op + `,` + typed), validating, refused, unusable},
		{"C13 a denial with a patch type", in(deny + `,` + typed), validating, refused, unusable},
		{"C13 a denial with a patch that is not base64", in(deny + `,"patch":"!"`), validating, refused, unusable},
		{"C13 a patch that is not base64, taken back", head + `"response":{"uid":"u1","patch":"!"},"response":null}`, validating, unusable, unusable},
		{"C13 a patch type, taken back", in(allow + `,` + typed + `,"patchType":null`), validating, unusable, allows},
		{"C13 an empty patch", in(allow + `,"patch":""`), validating, allows, allows},
		{"C14 null counts as none", in(allow + `,"patch":null,"patchType":null`), mutating, allows, allows},
		{"C14 patch without type", in(allow + `,` + op), mutating, unusable, unusable},
		{"C14 patch with a null type", in(allow + `,` + op + `,"patchType":null`), mutating, unusable, unusable},
		{"C14 type without patch", in(allow + `,` + typed), mutating, unusable, unusable},
		{"C14 type with a null patch", in(allow + `,"patch":null,` + typed), mutating, unusable, unusable},
		{"C14 other type", in(allow + `,` + op + `,"patchType":"MergePatch"`), mutating, unusable, unusable},
		{"C14 empty type", in(allow + `,` + op + `,"patchType":""`), mutating, unusable, unusable},
		{"C14 not base64", in(allow + `,"patch":"!",` + typed), mutating, unusable, unusable},
		{"C14 base64 for URLs", in(allow + `,"patch":"W10_",` + typed), mutating, unusable, unusable},
		{"C14 base64 without padding", in(allow + `,"patch":"W3t9XQ",` + typed), mutating, unusable, unusable},
		{"C14 not a string", in(allow + `,"patch":[],` + typed), mutating, unusable, unusable},
		{"C14 not JSON", in(allow + `,` + patch(`[`) + `,` + typed), mutating, unusable, unusable},
		{"C14 an object", in(allow + `,` + patch(`{}`) + `,` + typed), mutating, unusable, unusable},
		{"C14 an array of numbers", in(allow + `,` + patch(`[1]`) + `,` + typed), mutating, unusable, unusable},
		{"C14 cut off", in(allow + `,` + patch(`[{}`) + `,` + typed), mutating, unusable, unusable},
		{"C14 null and more", in(allow + `,` + patch(`null x`) + `,` + typed), mutating, unusable, unusable},
		{"C14 bytes in an array", in(allow + `,"patch":[91, 93],` + typed), mutating, allows, allows},
		{"C14 bytes in an array, one null", in(deny + `,"patch":[91,null,93],` + typed), mutating, denies, denies},
		{"C14 what is no byte in an array", in(allow + `,"patch":[91,93,256],` + typed), mutating, unusable, unusable},
		{"C14 what is no byte in the array of a denial", in(deny + `,"patch":[256],` + typed), mutating, refused, unusable},
		{"C14 bytes after a string", in(allow + `,` + op + `,"patch":[91,93],` + typed), mutating, unusable, allows},
		{"C14 a patch taken back", in(allow + `,` + op + `,"patch":null`), mutating, unusable, allows},
		{"C14 trailing bytes", in(allow + `,` + patch(`[{}]x`) + `,` + typed), mutating, unusable, unusable},
		{"C14 another type of no operation", in(allow + `,` + patch(`[]`) + `,"patchType":"MergePatch"`), mutating, allows, allows},
		{"C14 an array of null", in(allow + `,` + patch(`[null]`) + `,` + typed), mutating, allows, allows}, // and does not apply
		{"C14 the first of two not base64", in(allow + `,"patch":"!",` + op + `,` + typed), mutating, unusable, unusable},
		{"C14 a denial without type", in(deny + `,` + op), mutating, denies, unusable},
		{"C14 a denial with a type only", in(deny + `,` + typed), mutating, denies, unusable},
		{"C14 a denial with a patch that is not base64", in(deny + `,"patch":"!",` + typed), mutating, denies, unusable},
		{"C15 no patch and no type", in(allow), mutating, allows, allows},
		{"C15 empty array", in(allow + `,` + patch(`[]`) + `,` + typed), mutating, allows, allows},
		{"C15 empty array with spaces", in(allow + `,` + patch(" [ \n] ") + `,` + typed), mutating, allows, allows},
		{"C15 null", in(allow + `,` + patch(`null`) + `,` + typed), mutating, allows, allows},
		{"C20 a denial with a patch", in(deny + `,` + op + `,` + typed), mutating, denies, denies},
		{"C28 v1beta1", inBeta(allow), beta, allows, allows},
		{"C28 uid missing", strings.Replace(inBeta(allow), `"uid":"u1",`, ``, 1), beta, unusable, allows},
		{"C28 uid other, a denial", strings.Replace(inBeta(deny), "u1", "u2", 1), beta, refused, denies},
		{"C28 kind missing", strings.Replace(inBeta(allow), `"kind":"AdmissionReview",`, ``, 1), beta, unusable, allows},
		{"C28 version v1", in(allow), beta, unusable, unusable},
		{"C28 version v1, a denial", in(deny), beta, refused, unusable},
		{"C28 version unknown, a denial", strings.Replace(in(deny), "/v1", "/v9", 1), beta, refused, unusable},
		{"C28 kind Status", strings.Replace(inBeta(allow), `"kind":"AdmissionReview"`, `"kind":"Status"`, 1), beta, unusable, unusable},
		{"C28 a patch without type", inBeta(allow + `,` + op), betaMutating, allows, allows},
		{"C28 a patch of another type", inBeta(allow + `,` + op + `,"patchType":"x"`), betaMutating, allows, allows},
		{"C28 a type without patch", inBeta(allow + `,` + typed), betaMutating, allows, allows},
		{"C28 a validating patch", inBeta(allow + `,` + op), beta, unusable, allows},
		{"C28 a validating patch with a denial", inBeta(deny + `,` + op), beta, refused, denies},
		{"C28 a validating patch that is not base64", inBeta(allow + `,"patch":"!"`), beta, unusable, unusable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, _ := judge(t, tt.body, tt.want); got != tt.strict {
				t.Errorf("Strict: got %s, want %s", got, tt.strict)
			}
			lenient := tt.want
			lenient.Compat = codec.APIServer
			if got, _ := judge(t, tt.body, lenient); got != tt.apiServer {
				t.Errorf("APIServer: got %s, want %s", got, tt.apiServer)
			}
		})
	}
}

func TestVerifyPatch(t *testing.T) {
	const operations = `[{"op":"add","path":"/a","value":1}]`
	tests := []struct{ name, response, want string }{
		{"C14 decoded", `"patch":"` + b64(operations) + `","patchType":"JSONPatch"`, operations},
		{"C14 line breaks in base64", `"patch":"` + b64(operations)[:8] + `\r\n` + b64(operations)[8:] + `","patchType":"JSONPatch"`, operations},
		{"C14 bytes in an array", `"patch":[91, 123,125 ,93],"patchType":"JSONPatch"`, `[{}]`},
		{"C15 empty array", `"patch":"` + b64(`[]`) + `","patchType":"JSONPatch"`, ""},
		{"C15 null", `"patch":"` + b64(`null`) + `","patchType":"JSONPatch"`, ""},
		{"C15 none", `"warnings":[]`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, resp := judge(t, in(`"allowed":true,`+tt.response), expect(codec.V1, true, codec.Strict))
			if string(resp.Patch) != tt.want || tt.want == "" && resp.Patch != nil {
				t.Errorf("got %q", resp.Patch)
			}
		})
	}
	t.Run("C28 dropped from what validates", func(t *testing.T) {
		got, resp := judge(t, inBeta(`"allowed":true,`+tests[0].response), expect(codec.V1beta1, false, codec.APIServer))
		if got != allows || resp.Patch != nil {
			t.Errorf("got %s, %q", got, resp.Patch)
		}
	})
	t.Run("C20 dropped from a denial", func(t *testing.T) {
		_, resp := judge(t, in(`"allowed":false,`+tests[0].response), expect(codec.V1, true, codec.Strict))
		if resp.Patch != nil {
			t.Errorf("got %q", resp.Patch)
		}
	})
}

// verified returns the Response of a denial with this status.
func verified(t *testing.T, status string, compat codec.Compatibility) codec.Response {
	t.Helper()
	got, resp := judge(t, in(`"allowed":false,"status":`+status), expect(codec.V1, false, compat))
	if got != denies {
		t.Fatalf("%s: got %s", status, got)
	}
	return resp
}

func TestVerifyStatus(t *testing.T) {
	t.Run("C1 all of it", func(t *testing.T) {
		got := verified(t, `{"metadata":{},"status":"Failure","message":"no \u00e9","reason":"Forbidden","details":{"name":"x","causes":[{"reason":"r","message":"m","field":"f"}],"retryAfterSeconds":3},"code":403}`, codec.Strict)
		want := codec.Response{Code: 403, Reason: "Forbidden", Message: "no é", RetryAfterSeconds: 3, Causes: []codec.Cause{{Type: "r", Field: "f", Message: "m"}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("C8 allowed absent", func(t *testing.T) {
		_, resp := judge(t, in(`"x":1`), expect(codec.V1, false, codec.Strict))
		if diff := cmp.Diff(codec.Response{Code: 400}, resp); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("C21 codes", func(t *testing.T) {
		for code, want := range map[string][2]int32{
			"0": {400, 400}, "99": {400, 400}, "200": {400, 400}, "399": {400, 400}, "-1": {400, 400}, "null": {400, 400},
			"400": {400, 400}, "599": {599, 599}, "600": {400, 600}, "1000000": {400, 1000000},
		} {
			if got := verified(t, `{"code":`+code+`}`, codec.Strict).Code; got != want[0] {
				t.Errorf("code %s became %d, want %d", code, got, want[0])
			}
			if got := verified(t, `{"code":`+code+`}`, codec.APIServer).Code; got != want[1] {
				t.Errorf("code %s became %d for APIServer, want %d", code, got, want[1])
			}
		}
	})
	t.Run("C22 retryAfterSeconds", func(t *testing.T) {
		for seconds, want := range map[string]int32{"1000000000": 30, "31": 30, "30": 30, "1": 1, "0": 0, "-5": 0} {
			resp := verified(t, `{"code":429,"details":{"retryAfterSeconds":`+seconds+`}}`, codec.Strict)
			if resp.RetryAfterSeconds != want || resp.Code != 429 {
				t.Errorf("%s became %d, code %d", seconds, resp.RetryAfterSeconds, resp.Code)
			}
		}
	})
	t.Run("C23 a message of 1 MiB", func(t *testing.T) {
		message := verified(t, `{"message":"`+strings.Repeat("é", 1<<19)+`"}`, codec.Strict).Message
		if message != strings.Repeat("é", 4096) {
			t.Errorf("%d runes", utf8.RuneCountInString(message))
		}
	})
	t.Run("C23 control characters", func(t *testing.T) {
		message := verified(t, `{"message":"a\nb\r\u001b[31mc\u0000\u007f\u0085d\u2028e\u202ef\u2066g\u200e\u200f\u061ch\u200di"}`, codec.Strict).Message
		if want := "a\nb\n [31mc   d e\uFFFDf\uFFFDg\uFFFD\uFFFD\uFFFDh\u200di"; message != want {
			t.Errorf("got %+q, want %+q", message, want)
		}
	})
	t.Run("C23 what is as it was", func(t *testing.T) {
		const text = " ~\u00a0\u2030\u206a世\u2027\u202f"
		if message := verified(t, `{"message":"`+text+`"}`, codec.Strict).Message; message != text {
			t.Errorf("got %+q, want %+q", message, text)
		}
		if message := verified(t, `{"message":"\u202a\u202e\u2066\u2069\r"}`, codec.Strict).Message; message != "\uFFFD\uFFFD\uFFFD\uFFFD\n" {
			t.Errorf("got %+q", message)
		}
	})
	t.Run("C23 ends of lines", func(t *testing.T) {
		message := verified(t, `{"message":"a\r\nb\n\nc\rd\r\r\n"}`, codec.Strict).Message
		if want := "a\nb\n\nc\nd\n\n"; message != want {
			t.Errorf("got %+q, want %+q", message, want)
		}
	})
	t.Run("C23 reason and causes likewise", func(t *testing.T) {
		resp := verified(t, `{"reason":"a\nb","details":{"causes":[`+strings.TrimSuffix(strings.Repeat(`{"message":"`+strings.Repeat("x\\n", 300)+`"},`, 100), ",")+`]}}`, codec.Strict)
		if resp.Reason != "a b" || len(resp.Causes) != 16 || resp.Causes[15].Message != strings.Repeat("x\n", 128) {
			t.Errorf("got %+v", resp)
		}
		long := strings.Repeat("é", 1000)
		resp = verified(t, `{"reason":"`+long+`","details":{"causes":[{"reason":"`+long+`","field":"`+long+`","message":"`+long+`"}]}}`, codec.Strict)
		cause := codec.Cause{Type: long[:2*256], Field: long[:2*256], Message: long[:2*256]}
		if resp.Reason != long[:2*128] || len(resp.Causes) != 1 || resp.Causes[0] != cause {
			t.Errorf("got %+v", resp)
		}
	})
}

func TestVerifyWarningsAndAnnotations(t *testing.T) {
	t.Run("C24 1,000 warnings of 10 KiB", func(t *testing.T) {
		list, _ := json.Marshal(strings.Split(strings.TrimSuffix(strings.Repeat(strings.Repeat("é\n", 5<<10)+"|", 1000), "|"), "|"))
		_, resp := judge(t, in(`"allowed":true,"warnings":`+string(list)), expect(codec.V1, false, codec.Strict))
		if len(resp.Warnings) != 16 || resp.Warnings[15] != strings.Repeat("é ", 128) {
			t.Errorf("%d warnings, the first %q", len(resp.Warnings), resp.Warnings[0])
		}
	})
	t.Run("C24 empty warnings", func(t *testing.T) {
		_, resp := judge(t, in(`"allowed":true,"warnings":["",null,"w"]`), expect(codec.V1, false, codec.Strict))
		if diff := cmp.Diff([]string{"w"}, resp.Warnings); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("C25 10,000 annotations", func(t *testing.T) {
		notes := map[string]string{}
		for i := range 10_000 {
			notes[fmt.Sprintf("key%05d", i)] = strings.Repeat("é", 1000)
		}
		list, _ := json.Marshal(notes)
		_, resp := judge(t, in(`"allowed":true,"auditAnnotations":`+string(list)), expect(codec.V1, false, codec.Strict))
		if len(resp.Annotations) != 32 || resp.DroppedAnnotations != 10_000-32 {
			t.Fatalf("%d annotations, %d dropped", len(resp.Annotations), resp.DroppedAnnotations)
		}
		if last := resp.Annotations[31]; last.Key != "key00031" || last.Value != strings.Repeat("é", 512) {
			t.Errorf("the last is %q: %q", last.Key, last.Value)
		}
	})
	t.Run("C25 the lowest keys come last", func(t *testing.T) {
		var list []string
		for i := range 100 {
			list = append(list, fmt.Sprintf(`"key%02d":"%d"`, 99-i, i))
		}
		_, resp := judge(t, in(`"allowed":true,"auditAnnotations":{`+strings.Join(list, ",")+`}`), expect(codec.V1, false, codec.Strict))
		if len(resp.Annotations) != 32 || resp.DroppedAnnotations != 68 {
			t.Fatalf("%d annotations, %d dropped", len(resp.Annotations), resp.DroppedAnnotations)
		}
		for i, a := range resp.Annotations {
			if want := (codec.Annotation{Key: fmt.Sprintf("key%02d", i), Value: fmt.Sprint(99 - i)}); a != want {
				t.Errorf("%d: got %+v, want %+v", i, a, want)
			}
		}
	})
	t.Run("C25 letters and digits at their ends, and what is beside them", func(t *testing.T) {
		_, resp := judge(t, in(`"allowed":true,"auditAnnotations":{"0":"","9":"","A":"","Z":"","a":"","z":"","/":"",":":"","@":"","[":"","\u0060":"","{":""}`), expect(codec.V1, false, codec.Strict))
		if len(resp.Annotations) != 6 || resp.DroppedAnnotations != 6 {
			t.Errorf("got %+v, %d dropped", resp.Annotations, resp.DroppedAnnotations)
		}
	})
	t.Run("C25 a value that is not UTF-8", func(t *testing.T) {
		_, resp := judge(t, in("\"allowed\":true,\"auditAnnotations\":{\"a\":\"\xff\"}"), expect(codec.V1, false, codec.APIServer))
		if diff := cmp.Diff([]codec.Annotation{{Key: "a", Value: "\uFFFD"}}, resp.Annotations); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("C25 a key of 63, a value of whole runes", func(t *testing.T) {
		key := strings.Repeat("k", 63)
		_, resp := judge(t, in(`"allowed":true,"auditAnnotations":{"`+key+`":"`+strings.Repeat("€", 400)+`","l":"`+strings.Repeat("v", 1024)+`"}`), expect(codec.V1, false, codec.Strict))
		want := []codec.Annotation{{Key: key, Value: strings.Repeat("€", 341)}, {Key: "l", Value: strings.Repeat("v", 1024)}}
		if diff := cmp.Diff(want, resp.Annotations); diff != "" || resp.DroppedAnnotations != 0 {
			t.Errorf("%d dropped (-want +got)\n%s", resp.DroppedAnnotations, diff)
		}
	})
	t.Run("C25 bad keys and our own prefix", func(t *testing.T) {
		response := `"auditAnnotations":{"":"x","a/b":"x","a b":"x","-a":"x","a-":"x","é":"x","` + strings.Repeat("k", 64) + `":"x","dispatcher.dev":"x","dispatcher.dev.bypass":"x","ok.Key_1-2":"first","ok.Key_1-2":"last","b":"x"}`
		_, resp := judge(t, in(`"allowed":true,`+response), expect(codec.V1, false, codec.Strict))
		want := []codec.Annotation{{Key: "b", Value: "x"}, {Key: "ok.Key_1-2", Value: "last"}}
		if diff := cmp.Diff(want, resp.Annotations); diff != "" || resp.DroppedAnnotations != 10 {
			t.Errorf("%d dropped (-want +got)\n%s", resp.DroppedAnnotations, diff)
		}
	})
}

// The reason says what was expected.
func TestVerifyReasons(t *testing.T) {
	for body, want := range map[string]string{
		"<html>":                         "nor an object in YAML",
		"a: &a 1\nb: *a":                 "nor YAML of at most 64 KiB without aliases",
		`{"request":{"kind":"x"}}`:       "request.kind must be an object",
		`{"request":{"uid":{}}}`:         "request.uid must be a string",
		in(`"allowed":true`) + `x`:       "expected nothing after the document",
		in(`"allowed":1`):                "response.allowed must be true or false",
		in(`"patch":[256]`):              "response.patch must be base64",
		in(`"warnings":{}`):              "response.warnings must be an array of strings",
		in(`"status":{"code":"c"}`):      "status.code must be an integer of 32 bits",
		in(`"allowed":true,"patch":"!"`): "response.patch is not base64",
	} {
		_, err := codec.Verify([]byte(body), expect(codec.V1, false, codec.APIServer))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", body, err, want)
		}
	}
}

// A value that occurs again is merged, replaced or taken back as kube-apiserver
// reads it.
func TestVerifyMergesAsKubernetesDoes(t *testing.T) {
	for _, response := range []string{
		`"status" : { "code" : 403, "message":"m", "details":{ "causes":[{"field":"f"}], "retryAfterSeconds": 3 }},"status":{"reason":"r"}`,
		`"status":{"code":403,"message":"m","reason":"r","details":{"causes":[{"field":"f"}],"retryAfterSeconds":3}},"status":null`,
		`"status":{"details":{"causes":[{"reason":"r","field":"f","message":"m"},{"field":"g"}]}},"status":{"details":{"causes":[{"reason":"s","field":"h","message":"n"}]}}`,
		`"status":{"details":{"causes":[{"field":"f"},{"message":"m"}]}}`,
		`"warnings":["a","b"],"warnings":["c"]`, `"warnings":["a"],"warnings":null`, `"warnings":["a"],"warnings":[]`,
		`"auditAnnotations":{"a":"1","b":"2"},"auditAnnotations":{"b":"3","c":"4"}`, `"auditAnnotations":{"a":"1"},"auditAnnotations":null`,
	} {
		body := []byte(in(response))
		var typed admissionv1.AdmissionReview
		if _, _, err := apiServerDecoder.Decode(body, nil, &typed); err != nil {
			t.Fatalf("%s: %v", response, err)
		}
		got, err := codec.Verify(body, expect(codec.V1, false, codec.APIServer))
		if err != nil {
			t.Fatalf("%s: %v", response, err)
		}
		want := codec.Response{Code: 400, Warnings: typed.Response.Warnings}
		if s := typed.Response.Result; s != nil {
			want.Code, want.Message, want.Reason = max(want.Code, s.Code), s.Message, string(s.Reason)
			if s.Details != nil {
				want.RetryAfterSeconds = s.Details.RetryAfterSeconds
				for _, c := range s.Details.Causes {
					want.Causes = append(want.Causes, codec.Cause{Type: string(c.Type), Field: c.Field, Message: c.Message})
				}
			}
		}
		for _, key := range slices.Sorted(maps.Keys(typed.Response.AuditAnnotations)) {
			want.Annotations = append(want.Annotations, codec.Annotation{Key: key, Value: typed.Response.AuditAnnotations[key]})
		}
		got.DroppedAnnotations = 0
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-kube-apiserver +ours)\n%s", response, diff)
		}
	}
}

// What Verify returns must not change when the body is reused.
func TestVerifyBorrowsNothing(t *testing.T) {
	body := []byte(in(`"allowed":false,"status":{"message":"message","reason":"reason","details":{"causes":[{"message":"cause"}]}},"warnings":["warning"],"auditAnnotations":{"key":"value"}`))
	want := expect(codec.V1, false, codec.Strict)
	resp, err := codec.Verify(body, want)
	if err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprint(resp)
	clear(body)
	if _, err := codec.Verify([]byte(in(`"allowed":false,"status":{"message":"xxxxxxx"}`)), want); err != nil {
		t.Fatal(err)
	}
	if after := fmt.Sprint(resp); after != before {
		t.Errorf("%s became %s", before, after)
	}
}

func TestVerifyAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("with the race detector, pools drop what they like")
	}
	body, want := []byte(in(`"allowed":true`)), expect(codec.V1, false, codec.Strict)
	n := testing.AllocsPerRun(100, func() {
		if _, err := codec.Verify(body, want); err != nil {
			t.Fatal(err)
		}
	})
	if n > 1 {
		t.Errorf("a plain allow takes %v allocations", n)
	}
}
