// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// A form that is written later, when the Review is gone, is the one that would have
// been written at once.
func TestDeferred(t *testing.T) {
	json := plainReview().json()
	protobuf := mustDecode(t, json).AppendProtobuf(nil, codec.V1, nil)
	for name, read := range map[string]func(*codec.Review) error{
		"from JSON":     func(r *codec.Review) error { return readOnce(r.Decode, []byte(json)) },
		"from protobuf": func(r *codec.Review) error { return readOnce(r.DecodeProtobuf, protobuf) },
	} {
		for _, object := range [][]byte{nil, []byte(`{"mutated":true}`)} {
			for f := range forms() {
				review := codec.AcquireReview()
				if err := read(review); err != nil {
					t.Fatal(err)
				}
				payloads := codec.NewPayloads(review, &stubTranscoder{})
				want := bytes.Clone(payloads.Get(f, 1, object).Bytes())
				later := payloads.Later(f, 1, object)
				later.Retain()
				payloads.Release()
				codec.ReleaseReview(review)
				body, err := later.Body()
				if err != nil || !bytes.Equal(body.Bytes(), want) || later.Form() != f || later.IsZero() {
					t.Fatalf("%s, %+v: got %q, want %q, error %v", name, f, body.Bytes(), want, err)
				}
				body.Release()
				if later.Release(); body.Bytes() != nil {
					t.Errorf("%s, %+v: the Body outlives its last reference", name, f)
				}
			}
		}
	}
}

// readOnce has body belong to who reads it.
func readOnce(decode func(*codec.Body) error, body []byte) error {
	b := codec.NewBody(body, nil)
	defer b.Release()
	return decode(b)
}

func forms() func(yield func(codec.Form) bool) {
	return func(yield func(codec.Form) bool) {
		for _, v := range []codec.Version{codec.V1, codec.V1beta1} {
			for e := codec.JSON; e <= codec.ProtobufNative; e++ {
				for c := codec.Identity; c <= codec.Zstd; c++ {
					if !yield(codec.Form{Version: v, Encoding: e, Coding: c}) {
						return
					}
				}
			}
		}
	}
}

// BenchmarkMutatedReview is what it costs to send an object that was mutated in
// protobuf, with plain JSON to fall back to.
func BenchmarkMutatedReview(b *testing.B) {
	object := []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","annotations":{"note":"` + strings.Repeat("all work ", 50_000) + `"}}}`)
	protobuf, plain := codec.Form{Version: codec.V1, Encoding: codec.Protobuf}, codec.Form{Version: codec.V1}
	for name, fallback := range map[string]func(*codec.Payloads){
		"at once": func(p *codec.Payloads) { p.Get(plain, 1, object) },
		"later":   func(p *codec.Payloads) { p.Later(plain, 1, object) },
	} {
		b.Run(name, func(b *testing.B) {
			r := mustDecode(b, plainReview().json())
			var p codec.Payloads
			b.ReportAllocs()
			for b.Loop() {
				p.Reset(r, nil)
				p.Get(protobuf, 1, object)
				fallback(&p)
				p.Release()
			}
		})
	}
}
