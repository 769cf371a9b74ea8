// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"bytes"
	"os"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/codec/native"
)

// webhook decodes reviews as webhooks in Go do.
type webhook struct{ decoder runtime.Decoder }

func newWebhook(tb testing.TB) webhook {
	tb.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{admissionv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			tb.Fatal(err)
		}
	}
	return webhook{serializer.NewCodecFactory(scheme).UniversalDeserializer()}
}

// review returns the review in body, in whatever form.
func (w webhook) review(tb testing.TB, body []byte) *admissionv1.AdmissionReview {
	tb.Helper()
	var review admissionv1.AdmissionReview
	if _, _, err := w.decoder.Decode(body, nil, &review); err != nil {
		tb.Fatal(err)
	}
	return &review
}

// pod returns the Pod of the review in body.
func (w webhook) pod(tb testing.TB, body []byte) *corev1.Pod {
	tb.Helper()
	review := w.review(tb, body)
	var pod corev1.Pod
	if _, _, err := w.decoder.Decode(review.Request.Object.Raw, nil, &pod); err != nil {
		tb.Fatal(err)
	}
	return &pod
}

// referenceReview returns the creation of a Pod of 6 KB.
func referenceReview(tb testing.TB) *codec.Review {
	tb.Helper()
	data, err := os.ReadFile("testdata/review.json")
	if err != nil {
		tb.Fatal(err)
	}
	body := codec.NewBody(bytes.TrimSpace(data), nil)
	defer body.Release()
	review := codec.AcquireReview()
	tb.Cleanup(func() { codec.ReleaseReview(review) })
	if err := review.Decode(body); err != nil {
		tb.Fatal(err)
	}
	return review
}

// BenchmarkFiveWebhooks is what a review costs altogether: the dispatcher makes
// the form, and five webhooks decode it and the Pod in it.
func BenchmarkFiveWebhooks(b *testing.B) {
	transcoder, w := native.New(), newWebhook(b)
	for _, e := range []codec.Encoding{codec.JSON, codec.Protobuf, codec.ProtobufNative} {
		b.Run(e.String(), func(b *testing.B) {
			forms := codec.Forms{Review: referenceReview(b), Transcoder: transcoder}
			form := codec.Form{Version: codec.V1, Encoding: e}
			b.ReportAllocs()
			for b.Loop() {
				forms.Release()
				for range 5 {
					w.pod(b, forms.Get(form).Bytes())
				}
			}
			b.ReportMetric(float64(forms.Get(form).Len()), "bytes")
			forms.Release()
		})
	}
}

// BenchmarkAppendNative is the dispatcher's share of it, and the one of a webhook.
func BenchmarkAppendNative(b *testing.B) {
	transcoder, w, review := native.New(), newWebhook(b), referenceReview(b)
	b.Run("transcode", func(b *testing.B) {
		var memory []byte
		var ok bool
		o := &review.Object
		b.ReportAllocs()
		for b.Loop() {
			if memory, ok = transcoder.AppendNative(memory[:0], o.APIVersion, o.Kind, o.Raw); !ok {
				b.Fatal("given up")
			}
		}
	})
	for _, e := range []codec.Encoding{codec.JSON, codec.Protobuf, codec.ProtobufNative} {
		b.Run("webhook/"+e.String(), func(b *testing.B) {
			forms := codec.Forms{Review: review, Transcoder: transcoder}
			defer forms.Release()
			body := forms.Get(codec.Form{Version: codec.V1, Encoding: e})
			b.ReportAllocs()
			for b.Loop() {
				w.pod(b, body.Bytes())
			}
		})
	}
	b.Run("custom resource", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			transcoder.AppendNative(nil, []byte("example.com/v1"), []byte("Widget"), review.Object.Raw)
		}
	})
}
