// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/codec"
)

func TestPayloads(t *testing.T) {
	r := mustDecode(t, plainReview().json())
	p := codec.NewPayloads(r, nil)
	if got := p.Get(codec.Form{Version: codec.V1}, 0, nil); got != r.Body {
		t.Error("the received version is not the received Body")
	}
	beta := p.Get(codec.Form{Version: codec.V1beta1}, 0, nil)
	if !strings.Contains(string(beta.Bytes()), `"admission.k8s.io/v1beta1"`) {
		t.Errorf("got %s", beta.Bytes())
	}
	if again := p.Get(codec.Form{Version: codec.V1beta1}, 0, nil); again != beta {
		t.Error("one form was encoded twice")
	}
	held := beta.Retain()
	want := string(held.Bytes())

	mutated := p.Get(codec.Form{Version: codec.V1}, 1, []byte(`{"mutated":true}`))
	if !strings.Contains(string(mutated.Bytes()), `"object":{"mutated":true}`) || p.Get(codec.Form{Version: codec.V1}, 1, []byte(`{"mutated":true}`)) != mutated {
		t.Errorf("got %s", mutated.Bytes())
	}
	other := p.Get(codec.Form{Version: codec.V1beta1}, 1, []byte(`{"mutated":true}`))
	if other == mutated || p.Get(codec.Form{Version: codec.V1}, 1, []byte(`{"mutated":true}`)) != mutated {
		t.Error("two versions of a generation are not kept side by side")
	}
	p.Release()
	p.Reset(r, nil)
	p.Get(codec.Form{Version: codec.V1beta1}, 0, nil)
	p.Release()
	if string(held.Bytes()) != want {
		t.Error("a retained form changed after Release")
	}
	held.Release()
}

func TestPayloadsReleaseTheirForms(t *testing.T) {
	r := mustDecode(t, plainReview().json())
	var p codec.Payloads
	p.Reset(r, nil)
	first := p.Get(codec.Form{Version: codec.V1}, 1, []byte(`{}`))
	p.Get(codec.Form{Version: codec.V1}, 2, []byte(`{"a":1}`))
	if first.Bytes() != nil {
		t.Error("the form of an earlier generation is kept")
	}
	second := p.Get(codec.Form{Version: codec.V1}, 2, []byte(`{"a":1}`))
	if p.Release(); second.Bytes() != nil {
		t.Error("a form outlives Release")
	}
}

// stubTranscoder makes "native" objects of Pods only, and counts.
type stubTranscoder struct{ calls int }

func (s *stubTranscoder) AppendNative(dst, _, kind, _ []byte) ([]byte, bool) {
	s.calls++
	return append(dst, "native "...), string(kind) == "Pod"
}

func TestPayloadForms(t *testing.T) {
	r := mustDecode(t, plainReview().json())
	transcoder := &stubTranscoder{}
	p := codec.NewPayloads(r, transcoder)
	defer p.Release()
	form := func(v codec.Version, e codec.Encoding, c codec.Coding) *codec.Body {
		return p.Get(codec.Form{Version: v, Encoding: e, Coding: c}, 0, nil)
	}
	seen := map[*codec.Body]codec.Form{}
	for _, v := range []codec.Version{codec.V1, codec.V1beta1} {
		for e := codec.JSON; e <= codec.ProtobufNative; e++ {
			for c := codec.Identity; c <= codec.Zstd; c++ {
				body := form(v, e, c)
				if again := form(v, e, c); again != body {
					t.Errorf("%v %v %v was encoded twice", v, e, c)
				}
				if other, ok := seen[body]; ok {
					t.Errorf("%v %v %v is %v", v, e, c, other)
				}
				seen[body] = codec.Form{Version: v, Encoding: e, Coding: c}
			}
		}
	}
	if transcoder.calls != 1 {
		t.Errorf("objects were transcoded %d times", transcoder.calls)
	}
	if native := form(codec.V1, codec.ProtobufNative, codec.Identity); !strings.Contains(string(native.Bytes()), "native ") {
		t.Errorf("got %q", native.Bytes())
	}
	for _, c := range []codec.Coding{codec.Gzip, codec.Zstd} {
		plain, err := codec.Decompress(nil, c.String(), form(codec.V1, codec.Protobuf, c).Bytes(), 1<<20, nil)
		if err != nil || string(plain) != string(form(codec.V1, codec.Protobuf, codec.Identity).Bytes()) {
			t.Errorf("%v is another content: %v", c, err)
		}
	}
}

// Where one object cannot be native, or there is nobody to make it so, the forms
// are those of Protobuf.
func TestPayloadsGiveNativeUp(t *testing.T) {
	configMap := raw(`{"kind":"ConfigMap","apiVersion":"v1"}`)
	for name, body := range map[string]string{
		"the object":     plainReview().with("object", configMap).json(),
		"the old object": plainReview().with("oldObject", configMap).json(),
		"no object":      plainReview().with("object", nil).json(),
	} {
		t.Run(name, func(t *testing.T) {
			checkGivenUp(t, codec.NewPayloads(mustDecode(t, body), &stubTranscoder{}))
		})
	}
	t.Run("no transcoder", func(t *testing.T) {
		checkGivenUp(t, codec.NewPayloads(mustDecode(t, plainReview().json()), nil))
	})
}

func checkGivenUp(t *testing.T, p *codec.Payloads) {
	t.Helper()
	var bodies []*codec.Body
	for c := codec.Identity; c <= codec.Zstd; c++ {
		native := p.Get(codec.Form{Version: codec.V1, Encoding: codec.ProtobufNative, Coding: c}, 0, nil)
		if plain := p.Get(codec.Form{Version: codec.V1, Encoding: codec.Protobuf, Coding: c}, 0, nil); plain != native {
			t.Errorf("%q: native objects were given up, but the Body is not that of Protobuf", c)
		}
		bodies = append(bodies, native)
	}
	p.Release()
	for _, body := range bodies {
		if body.Bytes() != nil {
			t.Error("a form outlives Release")
		}
	}
}

// A renewed review differs from the received one in its uid alone, in every form.
func TestPayloadsRenew(t *testing.T) {
	for name, r := range map[string]*codec.Review{
		"from JSON":         mustDecode(t, plainReview().json()),
		"uid last, escaped": mustDecode(t, `{"request":{"operation":"CREATE","object":{"a":1},"resource":{"group":"","version":"v1","resource":"pods"},"uid":"a\"b"},"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`),
	} {
		var p codec.Payloads
		p.Reset(r, nil)
		object := []byte(`{"mutated":true}`)
		received := p.Get(codec.Form{Version: codec.V1}, 1, object)
		want := string(received.Bytes())
		uid := []byte("new-uid")
		p.Renew(uid)
		if received.Bytes() != nil {
			t.Errorf("%s: a form with the old uid is kept", name)
		}
		for _, v := range []codec.Version{codec.V1, codec.V1beta1} {
			for _, object := range [][]byte{object, nil} {
				later := p.Later(codec.Form{Version: v}, 1, object)
				plain, err := later.Body()
				if err != nil {
					t.Fatal(err)
				}
				for e := codec.JSON; e <= codec.Protobuf; e++ {
					p.Renew(uid) // forms with and without the object are of one generation
					check := decodeAs(t, e, p.Get(codec.Form{Version: v, Encoding: e}, 1, object))
					if string(check.UID) != "new-uid" || object != nil && string(check.Object.Raw) != string(object) {
						t.Errorf("%s: %v %v has uid %q and object %s", name, v, e, check.UID, check.Object.Raw)
					}
				}
				if got := decodeAs(t, codec.JSON, plain); string(got.UID) != "new-uid" {
					t.Errorf("%s: a form that is written later has uid %q", name, got.UID)
				}
				plain.Release()
			}
		}
		p.Renew(r.UID)
		if got := string(p.Get(codec.Form{Version: codec.V1}, 1, object).Bytes()); got != want {
			t.Errorf("%s: with its own uid it is\n%s, want\n%s", name, got, want)
		}
		p.Release()
		p.Reset(r, nil)
		if p.Get(codec.Form{Version: codec.V1}, 0, nil) != r.Body {
			t.Errorf("%s: the uid outlives Release", name)
		}
		p.Release()
	}
}

// decodeAs decodes a form that was written.
func decodeAs(t *testing.T, e codec.Encoding, body *codec.Body) *codec.Review {
	t.Helper()
	r := codec.AcquireReview()
	t.Cleanup(func() { codec.ReleaseReview(r) })
	decode := r.Decode
	if e == codec.Protobuf {
		decode = r.DecodeProtobuf
	}
	if err := decode(body); err != nil {
		t.Fatal(err)
	}
	return r
}
