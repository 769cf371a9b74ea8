// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/loadtest/payload"
)

type reference struct{ name, body string }

// payloads are the reference payloads of the benchmarks, in an order from small
// to large.
func payloads() []reference {
	return append(smallPayloads(), references(payload.ConfigMapCreate(), payload.CRDCreate(), payload.LargestUpdate())...)
}

func smallPayloads() []reference { return references(payload.PodCreate(), payload.DeploymentUpdate()) }

func references(reviews ...payload.Review) []reference {
	var list []reference
	for _, r := range reviews {
		list = append(list, reference{r.Name, string(r.Body)})
	}
	return list
}

// BenchmarkDecode compares with the peers of P5 and P6: what kube-apiserver's
// callees use, and the fastest strict reader of others.
func BenchmarkDecode(b *testing.B) {
	scheme := runtime.NewScheme()
	if err := admissionv1.AddToScheme(scheme); err != nil {
		b.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	for _, p := range payloads() {
		data := []byte(p.body)
		b.Run(p.name+"/ours", func(b *testing.B) {
			body := codec.NewBody(data, nil)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				r := codec.AcquireReview()
				if err := r.Decode(body); err != nil {
					b.Fatal(err)
				}
				codec.ReleaseReview(r)
			}
		})
		b.Run(p.name+"/jsontext", func(b *testing.B) {
			d := jsontext.NewDecoder(bytes.NewReader(nil))
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				// A bytes.Buffer: jsontext reads that in place.
				d.Reset(bytes.NewBuffer(data))
				if err := d.SkipValue(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(p.name+"/apimachinery", func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := decoder.Decode(data, nil, &admissionv1.AdmissionReview{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkVerify compares with the peer of P8.
func BenchmarkVerify(b *testing.B) {
	scheme := runtime.NewScheme()
	if err := admissionv1.AddToScheme(scheme); err != nil {
		b.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	answer := []byte(in(`"allowed":true,"status":{"metadata":{},"code":200}`))
	want := expect(codec.V1, false, codec.Strict)
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := codec.Verify(answer, want); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("apimachinery", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := decoder.Decode(answer, nil, &admissionv1.AdmissionReview{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A warm Decode takes no memory: everything that a review needs is pooled.
func TestDecodeAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("with the race detector, pools drop what they like")
	}
	for _, p := range smallPayloads() {
		body := codec.NewBody([]byte(p.body), nil)
		n := testing.AllocsPerRun(200, func() {
			r := codec.AcquireReview()
			if err := r.Decode(body); err != nil {
				t.Fatal(err)
			}
			codec.ReleaseReview(r)
		})
		if n > 0 {
			t.Errorf("%s: %v allocations", p.name, n)
		}
	}
}
