// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/harness/fuzz"
)

// decodeReview returns the Review of a body in protobuf, valid until the end of
// the test.
func decodeReview(t testing.TB, body []byte) (*codec.Review, error) {
	t.Helper()
	b := codec.NewBody(bytes.Clone(body), func(data []byte) { clear(data) })
	r := codec.AcquireReview()
	err := r.DecodeProtobuf(b)
	b.Release()
	t.Cleanup(func() { codec.ReleaseReview(r) })
	return r, err
}

// asProtobuf is what Kubernetes writes for the review in body.
func asProtobuf(t fatalist, oracle runtime.Encoder, body string) []byte {
	var typed admissionv1.AdmissionReview
	var out bytes.Buffer
	err := json.Unmarshal([]byte(body), &typed)
	if err == nil {
		err = oracle.Encode(&typed, &out)
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	return out.Bytes()
}

// A review is the same in protobuf as in JSON, and so is what webhooks get of it.
func TestDecodeProtobufProperty(t *testing.T) {
	oracle := kubernetesProtobuf(t)
	rapid.Check(t, func(rt *rapid.T) {
		body := anyReview(rt).json()
		data := asProtobuf(rt, oracle, body)
		got, err := decodeReview(t, data)
		if err != nil {
			rt.Fatalf("%v", err)
		}
		if diff := cmp.Diff(ownFields(mustDecode(t, body)), ownFields(got)); diff != "" {
			rt.Fatalf("(-JSON +protobuf)\n%s", diff)
		}
		checkJSON(rt, got, body)
		checkProtobuf(rt, oracle, got, []byte(body))
	})
}

// checkJSON makes sure that the JSON of a review that came in protobuf says to
// Kubernetes, in both versions, what body says.
func checkJSON(t fatalist, r *codec.Review, body string) {
	var want, got admissionv1.AdmissionReview
	var wantBeta, gotBeta admissionv1beta1.AdmissionReview
	for _, err := range []error{
		json.Unmarshal([]byte(body), &want), json.Unmarshal(r.AppendReview(nil, codec.V1, nil), &got),
		json.Unmarshal([]byte(body), &wantBeta), json.Unmarshal(r.AppendReview(nil, codec.V1beta1, nil), &gotBeta),
	} {
		if err != nil {
			t.Fatalf("%v", err)
		}
	}
	wantBeta.APIVersion = "admission.k8s.io/v1beta1"
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("v1 (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(wantBeta, gotBeta, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("v1beta1 (-want +got)\n%s", diff)
	}
}

func TestFormsOfAProtobufReview(t *testing.T) {
	r, err := decodeReview(t, asProtobuf(t, kubernetesProtobuf(t), plainReview().json()))
	if err != nil {
		t.Fatal(err)
	}
	received, mutated := codec.Forms{Review: r}, codec.Forms{Review: r, Object: []byte(`{"mutated":true}`)}
	if got := received.Get(codec.Form{Version: codec.V1, Encoding: codec.Protobuf}); got != r.Body {
		t.Error("the received form is not the received Body")
	}
	if got := mutated.Get(codec.Form{Version: codec.V1}); !strings.Contains(string(got.Bytes()), `"object":{"mutated":true}`) {
		t.Errorf("got %s", got.Bytes())
	}
}

// protobufReview is a v1 review of these fields; plain ones are uid, resource and
// operation.
func protobufReview(fields ...string) string {
	return enveloped("admission.k8s.io/v1", "AdmissionReview", text(1, fields...))
}

func TestDecodeProtobufRefuses(t *testing.T) {
	uid, resource, create := text(1, "u"), text(3, text(3, "pods")), text(7, "CREATE")
	plain := protobufReview(uid, resource, create)
	with := func(fields ...string) string {
		return protobufReview(uid + resource + create + strings.Join(fields, ""))
	}
	object := func(s string) string { return text(9, text(1, s)) }
	tests := []struct{ name, body, pointer string }{
		{"B1 empty", "", ""},
		{"B1 JSON", plainReview().json(), ""},
		{"B1 no content", "k8s\x00", "/kind"},
		{"B1 truncated", plain[:len(plain)-8], ""},
		{"B2 trailing bytes", plain + "x", ""},
		{"B3 uid twice", with(uid), "/request/uid"},
		{"B3 request twice", enveloped("admission.k8s.io/v1", "AdmissionReview", text(1, uid, resource, create), text(1, uid)), "/request"},
		{"B7 other kind", enveloped("admission.k8s.io/v1", "Pod", text(1, uid)), "/kind"},
		{"B7 version unknown", enveloped("admission.k8s.io/v2", "AdmissionReview", text(1, uid)), "/apiVersion"},
		{"B7 no type", "k8s\x00" + text(2, text(1, uid)), "/kind"},
		{"B9 request absent", enveloped("admission.k8s.io/v1", "AdmissionReview"), "/request"},
		{"B9 uid absent", protobufReview(resource, create), "/request/uid"},
		{"B9 uid empty", protobufReview(text(1), resource, create), "/request/uid"},
		{"B9 uid of another type", protobufReview(number(1, 1), resource, create), "/request/uid"},
		{"B5 invalid UTF-8 in the uid", protobufReview(text(1, "\xff"), resource, create), "/request/uid"},
		{"B9 uid too long", protobufReview(text(1, strings.Repeat("x", 129))), "/request/uid"},
		{"B9 uid with control characters", protobufReview(text(1, "a\n")), "/request/uid"},
		{"another content", strings.TrimSuffix(plain, text(4)) + text(4, "application/json"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := decodeReview(t, []byte(tt.body))
			var envelope *codec.EnvelopeError
			if !errors.As(err, &envelope) || envelope.Pointer+envelope.Member != tt.pointer {
				t.Errorf("got %v, want an EnvelopeError at %q", err, tt.pointer)
			}
		})
	}
	for _, tt := range []struct{ name, body, pointer string }{
		{"B10 operation unknown", protobufReview(uid, resource, text(7, "READ")), "/request/operation"},
		{"B10 resource absent", protobufReview(uid, create), "/request/resource"},
		{"B13 object not an object", with(object(`7`)), "/request/object"},
		{"B3 username twice", with(text(8, text(1, "a"), text(1, "a"))), "/request/userInfo/username"},
		{"B3 username twice, beside a response", enveloped("admission.k8s.io/v1", "AdmissionReview", text(1, uid, resource, create, text(8, text(1, "a"), text(1, "a"))), text(2, text(1, "u2"))), "/request/userInfo/username"},
		{"B3 username twice, the content named", strings.TrimSuffix(with(text(8, text(1, "a"), text(1, "a"))), text(4)) + text(4, codec.MediaTypeProtobuf), "/request/userInfo/username"},
		{"B3 extra twice", with(text(8, text(4, text(1, "k")), text(4, text(1, "k")))), "/request/userInfo/extra/k"},
		{"B3 duplicate label", with(object(`{"metadata":{"labels":{"a":"b","a":"c"}}}`)), "/request/object/metadata/labels/a"},
		{"B4 case variant in the object", with(object(`{"Metadata":{}}`)), "/request/object/Metadata"},
		{"B2 object is not JSON, behind a user", with(text(8, text(1, "ann")) + object(`{"a":01}`)), "/request/object"},
		{"B5 invalid UTF-8 in a name", with(text(5, "\xff")), "/request/name"},
		{"B5 invalid UTF-8 in a label", with(object("{\"metadata\":{\"labels\":{\"a\":\"\xff\"}}}")), "/request/object"},
		{"B6 nesting", with(object(strings.Repeat(`{"a":`, 9_999) + "1" + strings.Repeat("}", 9_999))), "/request/object"},
		{"B2 object is not JSON", with(object(`{"a":01}`)), "/request/object"},
		{"B2 object with trailing bytes", with(object(`{}x`)), "/request/object"},
		{"B2 object empty", with(object(``)), "/request/object"},
		{"dryRun is 2", with(number(11, 2)), "/request/dryRun"},
		{"B3 raw twice", plain + text(2), "/raw"},
		{"native object", with(object("k8s\x00x")), "/request/object"},
		{"native options", with(text(12, text(1, "k8s\x00"))), "/request/options"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := decodeReview(t, []byte(tt.body))
			var request *codec.RequestError
			if !errors.As(err, &request) || request.Pointer+request.Member != tt.pointer || string(r.UID) != "u" || r.Version != codec.V1 {
				t.Errorf("got %v, want a RequestError at %q", err, tt.pointer)
			}
		})
	}
	t.Run("accepted", func(t *testing.T) {
		for _, body := range []string{
			plain, strings.TrimSuffix(plain, text(4)) + text(4, codec.MediaTypeProtobuf), with(text(8, text(4, text(1, "k")), text(4, text(2, text(1, "v"))))), with(object(`null`)), with(object("{\"a\":\"\xff\"}")), with(object(` {} `)), with(text(9)), with("\xa2\x06\x01x"),
			with(object(strings.Repeat(`{"a":`, 9_000) + "1" + strings.Repeat("}", 9_000))),
		} {
			if _, err := decodeReview(t, []byte(body)); err != nil {
				t.Error(err)
			}
		}
	})
}

// What a kind or a resource does not say is not what the one before it said.
func TestDecodeProtobufKeepsPartsApart(t *testing.T) {
	full := func(field byte, last string) string {
		return text(field, text(1, "group"), text(2, "version"), text(3, last))
	}
	r, err := decodeReview(t, []byte(protobufReview(text(1, "u"), text(7, "CREATE"), full(2, "Pod"), text(3, text(3, "pods")), full(14, "pods"), text(13, text(3, "Pod")))))
	if err != nil {
		t.Fatal(err)
	}
	if r.Resource.Group != nil || r.Resource.Version != nil || r.RequestKind.Group != nil || r.RequestKind.Version != nil {
		t.Errorf("got resource %q, requestKind %q", r.Resource, r.RequestKind)
	}
}

// FuzzDecodeProtobuf: what is a review to us is the same one to Kubernetes.
func FuzzDecodeProtobuf(f *testing.F) {
	oracle := kubernetesProtobuf(f)
	for _, v := range []review{
		plainReview(), plainReview().without("requestKind", "object"), plainReview().with("oldObject", raw(`{"metadata":{"labels":{"a":"b"}}}`), "dryRun", true),
	} {
		f.Add(asProtobuf(f, oracle, v.json()))
	}
	fuzz.Run(f, func(t testing.TB, data []byte) {
		r, err := decodeReview(t, data)
		if err != nil {
			return
		}
		typed, err := decodeProtobuf(oracle, data)
		if err != nil {
			return // in what we do not read
		}
		for _, object := range []*runtime.RawExtension{&typed.Request.Object, &typed.Request.OldObject, &typed.Request.Options} {
			object.Raw = bytes.TrimSpace(object.Raw)
		}
		if want, got := typedFields(typed, json.Unmarshal), ownFields(r); !reflect.DeepEqual(want, got) {
			t.Fatalf("(-Kubernetes +ours)\n%s", cmp.Diff(want, got))
		}
	})
}

func TestAppendProtobufAnswerProperty(t *testing.T) {
	oracle := kubernetesProtobuf(t)
	rapid.Check(t, func(t *rapid.T) {
		resp, uid := anyResponse(t), rapid.String().Draw(t, "uid")
		got, err := decodeProtobuf(oracle, codec.AppendProtobufAnswer([]byte("head"), codec.V1, []byte(uid), &resp)[len("head"):])
		if err != nil {
			t.Fatal(err)
		}
		var want admissionv1.AdmissionReview
		unmarshal(t, codec.AppendAnswer(nil, codec.V1, []byte(uid), &resp), &want)
		if diff := cmp.Diff(&want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-JSON +protobuf)\n%s", diff)
		}
		beta, _, err := oracle.Decode(codec.AppendProtobufAnswer(nil, codec.V1beta1, []byte(uid), &resp), nil, nil)
		if err != nil || beta.(*admissionv1beta1.AdmissionReview).Response.Allowed != resp.Allowed {
			t.Fatalf("v1beta1: %v, %v", beta, err)
		}
	})
}

func TestAnswerInKind(t *testing.T) {
	body := plainReview().json()
	inJSON := mustDecode(t, body)
	inProto, err := decodeReview(t, asProtobuf(t, kubernetesProtobuf(t), body))
	if err != nil {
		t.Fatal(err)
	}
	resp := codec.Response{Allowed: true}
	if got := inJSON.AppendAnswer(nil, &resp); got[0] != '{' {
		t.Errorf("got %q", got)
	}
	if got := inProto.AppendAnswer(nil, &resp); !bytes.HasPrefix(got, []byte("k8s\x00")) {
		t.Errorf("got %q", got)
	}
}

func TestDecodeProtobufAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("with the race detector, pools drop what they like")
	}
	body := codec.NewBody(asProtobuf(t, kubernetesProtobuf(t), smallPayloads()[0].text()), nil)
	n := testing.AllocsPerRun(200, func() {
		r := codec.AcquireReview()
		if err := r.DecodeProtobuf(body); err != nil {
			t.Fatal(err)
		}
		codec.ReleaseReview(r)
	})
	if n > 0 {
		t.Errorf("it takes %v allocations", n)
	}
}
