// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// kubernetesProtobuf is apimachinery's serializer, the oracle of ours.
func kubernetesProtobuf(t testing.TB) *protobuf.Serializer {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{admissionv1.AddToScheme, admissionv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return protobuf.NewSerializer(scheme, scheme)
}

// fatalist is a testing.TB or a rapid.T.
type fatalist interface {
	Fatalf(format string, args ...any)
}

// checkProtobuf makes sure that the protobuf of a review, as either version, says
// to Kubernetes what its JSON says.
func checkProtobuf(t fatalist, oracle runtime.Decoder, r *codec.Review, body []byte) {
	var want admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &want); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	want.APIVersion, want.Response = "admission.k8s.io/v1", nil
	for _, object := range []*runtime.RawExtension{&want.Request.Object, &want.Request.OldObject} {
		object.Raw = bytes.TrimSpace(object.Raw)
	}
	checkDecoded(t, oracle, r.AppendProtobuf(nil, codec.V1, nil), &want)

	var beta admissionv1beta1.AdmissionReview
	want.APIVersion = "admission.k8s.io/v1beta1"
	convert(t, &want, &beta)
	checkDecoded(t, oracle, r.AppendProtobuf(nil, codec.V1beta1, nil), &beta)
}

func checkDecoded(t fatalist, oracle runtime.Decoder, data []byte, want runtime.Object) {
	got, _, err := oracle.Decode(data, nil, nil)
	if err != nil {
		t.Fatalf("%v in %q", err, data)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
}

// convert goes from one version to another by way of JSON.
func convert(t fatalist, from, to any) {
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false) // the objects are copied as they are
	err := encoder.Encode(from)
	if err == nil {
		err = json.Unmarshal(data.Bytes(), to)
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
}

func TestAppendProtobuf(t *testing.T) {
	oracle := kubernetesProtobuf(t)
	kind := map[string]any{"group": "apps", "version": "v1", "kind": "Scale"}
	tests := []struct {
		name   string
		review review
	}{
		{"plain", plainReview()},
		{"dryRun absent", plainReview().without("dryRun")},
		{"dryRun null", plainReview().with("dryRun", nil)},
		{"dryRun true", plainReview().with("dryRun", true)},
		{"requestKind only", plainReview().without("requestResource").with("requestSubResource", "scale")},
		{"requestResource only", plainReview().without("requestKind").with("subResource", "scale")},
		{"neither", plainReview().without("requestKind", "requestResource").with("subResource", "scale")},
		{"requestKind null", plainReview().with("requestKind", nil, "requestResource", nil)},
		{"requestKind another", plainReview().with("requestKind", kind, "requestSubResource", "scale", "subResource", "status")},
		{"no user", plainReview().without("userInfo")},
		{"extra", plainReview().with("userInfo", map[string]any{"extra": map[string]any{"a": []string{"1", ""}, "b": []string{}, "c": nil, "": []string{"x"}}})},
		{"an old object", plainReview().with("operation", "DELETE", "object", nil, "oldObject", raw(`{"a": [1.0, -0]}`))},
		{"no object", plainReview().without("object", "oldObject", "options")},
		{"options null", plainReview().with("options", nil)},
		{"names absent", plainReview().without("kind", "name", "namespace")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := tt.review.json()
			checkProtobuf(t, oracle, mustDecode(t, body), []byte(body))
		})
	}
}

// The bytes are those that Kubernetes' own types write.
func TestAppendProtobufIsWhatKubernetesWrites(t *testing.T) {
	for _, p := range smallPayloads() {
		var typed admissionv1.AdmissionReview
		if err := json.Unmarshal([]byte(p.text()), &typed); err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		if err := kubernetesProtobuf(t).Encode(&typed, &want); err != nil {
			t.Fatal(err)
		}
		if got := mustDecode(t, p.text()).AppendProtobuf(nil, codec.V1, nil); !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s: %d bytes that differ from the %d of Kubernetes", p.name, len(got), want.Len())
		}
	}
}

func TestAppendProtobufReplacesTheObject(t *testing.T) {
	body := plainReview().json()
	got, _, err := kubernetesProtobuf(t).Decode(mustDecode(t, body).AppendProtobuf(nil, codec.V1, []byte(`{"mutated":true}`)), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if object := got.(*admissionv1.AdmissionReview).Request.Object.Raw; string(object) != `{"mutated":true}` {
		t.Errorf("got %s", object)
	}
}

func TestAppendProtobufProperty(t *testing.T) {
	oracle := kubernetesProtobuf(t)
	rapid.Check(t, func(rt *rapid.T) {
		body := anyReview(rt).json()
		checkProtobuf(rt, oracle, mustDecode(t, body), []byte(body))
	})
}

// anyReview draws a review that can be judged.
func anyReview(t *rapid.T) review {
	v := plainReview()
	text := rapid.String()
	names := func(last string) any {
		return map[string]any{"group": text.Draw(t, "group"), "version": text.Draw(t, "version"), last: "x" + text.Draw(t, last)}
	}
	values := map[string]func() any{
		"kind":            func() any { return names("kind") },
		"resource":        func() any { return names("resource") },
		"requestKind":     func() any { return names("kind") },
		"requestResource": func() any { return names("resource") },
		"userInfo": func() any {
			return map[string]any{
				"username": text.Draw(t, "username"), "uid": text.Draw(t, "uid"), "groups": rapid.SliceOf(text).Draw(t, "groups"),
				"extra": rapid.MapOf(text, rapid.SliceOf(text)).Draw(t, "extra"),
			}
		},
		"object":    func() any { return map[string]any{"x": text.Draw(t, "object")} },
		"oldObject": func() any { return map[string]any{"x": text.Draw(t, "oldObject")} },
		"options":   func() any { return map[string]any{"x": text.Draw(t, "options")} },
		"dryRun":    func() any { return rapid.Bool().Draw(t, "dryRun") },
		"operation": func() any {
			return rapid.SampledFrom([]string{"CREATE", "UPDATE", "DELETE", "CONNECT"}).Draw(t, "operation")
		},
	}
	for _, name := range []string{"subResource", "requestSubResource", "name", "namespace"} {
		values[name] = func() any { return text.Draw(t, name) }
	}
	required := map[string]bool{"resource": true, "operation": true}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch choice := rapid.IntRange(0, 5).Draw(t, name); {
		case choice == 0 && !required[name]:
			v = v.without(name)
		case choice == 1 && !required[name]:
			v = v.with(name, nil)
		default:
			v = v.with(name, values[name]())
		}
	}
	return v
}

// FuzzAppendProtobuf: whatever JSON is a review says the same in protobuf.
func FuzzAppendProtobuf(f *testing.F) {
	addReviews(f)
	oracle := kubernetesProtobuf(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := decode(t, string(data)); err == nil {
			checkProtobuf(t, oracle, r, data)
		}
	})
}

func TestAppendProtobufAllocations(t *testing.T) {
	r := mustDecode(t, smallPayloads()[0].text())
	memory := make([]byte, 0, 16<<10)
	if n := testing.AllocsPerRun(100, func() { r.AppendProtobuf(memory, codec.V1, nil) }); n > 0 {
		t.Errorf("it takes %v allocations", n)
	}
}

// BenchmarkProtobufEnvelope compares with Kubernetes' own types, already decoded.
func BenchmarkProtobufEnvelope(b *testing.B) {
	body := smallPayloads()[0].text()
	b.Run("ours", func(b *testing.B) {
		r := mustDecode(b, body)
		var memory []byte
		b.ReportAllocs()
		for b.Loop() {
			memory = r.AppendProtobuf(memory[:0], codec.V1, nil)
		}
	})
	b.Run("peer", func(b *testing.B) {
		var typed admissionv1.AdmissionReview
		if err := json.Unmarshal([]byte(body), &typed); err != nil {
			b.Fatal(err)
		}
		peer := kubernetesProtobuf(b)
		var memory bytes.Buffer
		b.ReportAllocs()
		for b.Loop() {
			memory.Reset()
			if err := peer.Encode(&typed, &memory); err != nil {
				b.Fatal(err)
			}
		}
	})
}
