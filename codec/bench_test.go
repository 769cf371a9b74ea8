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

// reference is one document of the benchmarks, or several of a kind that are
// taken in turn.
type reference struct {
	name   string
	bodies []*codec.Body
}

// differentReviews is how many of the small documents there are.
const differentReviews = 64

// payloads are the reference payloads of the benchmarks, in an order from small
// to large.
func payloads() []reference {
	return append(smallPayloads(), referenceOf(payload.ConfigMapCreate()), referenceOf(payload.CRDCreate()), referenceOf(payload.LargestUpdate()))
}

func smallPayloads() []reference {
	return []reference{referenceOf(payload.PodCreates(differentReviews)...), referenceOf(payload.DeploymentUpdates(differentReviews)...)}
}

func referenceOf(reviews ...payload.Review) reference {
	r := reference{name: reviews[0].Name}
	for _, review := range reviews {
		r.bodies = append(r.bodies, codec.NewBody(review.Body, nil))
	}
	return r
}

// text is the first document.
func (r reference) text() string { return string(r.bodies[0].Bytes()) }

// size is how many bytes the documents have on average.
func (r reference) size() int64 {
	total := 0
	for _, body := range r.bodies {
		total += body.Len()
	}
	return int64(total / len(r.bodies))
}

// run has decode decode the documents in turn.
func (r reference) run(b *testing.B, decode func(*codec.Body) error) {
	b.SetBytes(r.size())
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := decode(r.bodies[i%len(r.bodies)]); err != nil {
			b.Fatal(err)
		}
	}
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
		b.Run(p.name+"/ours", func(b *testing.B) { p.run(b, decodeOnce) })
		b.Run(p.name+"/jsontext", func(b *testing.B) {
			d := jsontext.NewDecoder(bytes.NewReader(nil))
			p.run(b, func(body *codec.Body) error {
				d.Reset(bytes.NewBuffer(body.Bytes())) // which jsontext reads in place
				return d.SkipValue()
			})
		})
		b.Run(p.name+"/apimachinery", func(b *testing.B) {
			p.run(b, func(body *codec.Body) error {
				_, _, err := decoder.Decode(body.Bytes(), nil, &admissionv1.AdmissionReview{})
				return err
			})
		})
	}
}

// decodeOnce decodes body as a caller does that is done with it at once.
func decodeOnce(body *codec.Body) error {
	r := codec.AcquireReview()
	defer codec.ReleaseReview(r)
	return r.Decode(body)
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
		i := 0
		n := testing.AllocsPerRun(200, func() {
			if err := decodeOnce(p.bodies[i%len(p.bodies)]); err != nil {
				t.Fatal(err)
			}
			i++
		})
		if n > 0 {
			t.Errorf("%s: %v allocations", p.name, n)
		}
	}
}
