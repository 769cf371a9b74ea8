// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// A form is made once, beside those that were made before. What was received is not
// made at all.
func TestForms(t *testing.T) {
	r := mustDecode(t, plainReview().json())
	received, mutated := codec.Forms{Review: r}, codec.Forms{Review: r, Object: []byte(`{"mutated":true}`)}
	if got := received.Get(codec.Form{Version: codec.V1}); got != r.Body {
		t.Error("the received version is not the received Body")
	}
	for name, c := range map[string]struct {
		forms *codec.Forms
		want  map[codec.Version]string
	}{
		"as received": {&received, map[codec.Version]string{codec.V1beta1: `"admission.k8s.io/v1beta1"`}},
		"mutated":     {&mutated, map[codec.Version]string{codec.V1: `"object":{"mutated":true}`, codec.V1beta1: `"object":{"mutated":true}`}},
	} {
		made := map[codec.Version]*codec.Body{}
		for v, want := range c.want {
			form := codec.Form{Version: v}
			if c.forms.Find(form) != nil {
				t.Errorf("%s: %v is there before anybody asked", name, v)
			}
			if made[v] = c.forms.Get(form); !strings.Contains(string(made[v].Bytes()), want) {
				t.Errorf("%s: got %s", name, made[v].Bytes())
			}
		}
		for v, body := range made {
			if form := (codec.Form{Version: v}); c.forms.Get(form) != body || c.forms.Find(form) != body {
				t.Errorf("%s: %v was encoded twice", name, v)
			}
		}
	}
}

// Bodies that somebody holds outlive Release, others do not.
func TestFormsAreReleased(t *testing.T) {
	f := codec.Forms{Review: mustDecode(t, plainReview().json()), Object: []byte(`{}`)}
	beta := codec.Form{Version: codec.V1beta1}
	held, dropped := f.Get(beta).Retain(), f.Get(codec.Form{Version: codec.V1})
	want := string(held.Bytes())
	f.Release()
	if dropped.Bytes() != nil {
		t.Error("a form outlives Release")
	}
	if f.Find(beta) != nil || f.Get(beta) == held {
		t.Error("a form is found after Release")
	}
	if f.Release(); string(held.Bytes()) != want {
		t.Error("a retained form changed after Release")
	}
	held.Release()
}

// stubTranscoder makes "native" objects of Pods only, and counts.
type stubTranscoder struct{ calls int }

func (s *stubTranscoder) AppendNative(dst, _, kind, _ []byte) ([]byte, bool) {
	s.calls++
	return append(dst, "native "...), string(kind) == "Pod"
}

func TestEveryForm(t *testing.T) {
	r := mustDecode(t, plainReview().json())
	transcoder := &stubTranscoder{}
	f := codec.Forms{Review: r, Transcoder: transcoder}
	defer f.Release()
	form := func(v codec.Version, e codec.Encoding, c codec.Coding) *codec.Body {
		return f.Get(codec.Form{Version: v, Encoding: e, Coding: c})
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
func TestFormsGiveNativeUp(t *testing.T) {
	configMap := raw(`{"kind":"ConfigMap","apiVersion":"v1"}`)
	for name, body := range map[string]string{
		"the object":     plainReview().with("object", configMap).json(),
		"the old object": plainReview().with("oldObject", configMap).json(),
		"no object":      plainReview().with("object", nil).json(),
	} {
		t.Run(name, func(t *testing.T) {
			checkGivenUp(t, &codec.Forms{Review: mustDecode(t, body), Transcoder: &stubTranscoder{}})
		})
	}
	t.Run("no transcoder", func(t *testing.T) {
		checkGivenUp(t, &codec.Forms{Review: mustDecode(t, plainReview().json())})
	})
}

func checkGivenUp(t *testing.T, f *codec.Forms) {
	t.Helper()
	var bodies []*codec.Body
	for c := codec.Identity; c <= codec.Zstd; c++ {
		native := f.Get(codec.Form{Version: codec.V1, Encoding: codec.ProtobufNative, Coding: c})
		if plain := f.Get(codec.Form{Version: codec.V1, Encoding: codec.Protobuf, Coding: c}); plain != native {
			t.Errorf("%q: native objects were given up, but the Body is not that of Protobuf", c)
		}
		bodies = append(bodies, native)
	}
	f.Release()
	for _, body := range bodies {
		if body.Bytes() != nil {
			t.Error("a form outlives Release")
		}
	}
}

// A review under another uid differs from the received one in its uid alone, in every
// form.
func TestFormsUnderAnotherUID(t *testing.T) {
	for name, r := range map[string]*codec.Review{
		"from JSON":         mustDecode(t, plainReview().json()),
		"uid last, escaped": mustDecode(t, `{"request":{"operation":"CREATE","object":{"a":1},"resource":{"group":"","version":"v1","resource":"pods"},"uid":"a\"b"},"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`),
	} {
		mutated := []byte(`{"mutated":true}`)
		for _, object := range [][]byte{mutated, nil} {
			f := codec.Forms{Review: r, Object: object, UID: []byte("new-uid")}
			for _, v := range []codec.Version{codec.V1, codec.V1beta1} {
				for e := codec.JSON; e <= codec.Protobuf; e++ {
					check := decodeAs(t, e, f.Get(codec.Form{Version: v, Encoding: e}))
					if string(check.UID) != "new-uid" || object != nil && string(check.Object.Raw) != string(object) {
						t.Errorf("%s: %v %v has uid %q and object %s", name, v, e, check.UID, check.Object.Raw)
					}
				}
			}
			f.Release()
		}
		received, own := codec.Forms{Review: r, Object: mutated}, codec.Forms{Review: r, Object: mutated, UID: r.UID}
		want := string(received.Get(codec.Form{Version: codec.V1}).Bytes())
		if got := string(own.Get(codec.Form{Version: codec.V1}).Bytes()); got != want {
			t.Errorf("%s: with its own uid it is\n%s, want\n%s", name, got, want)
		}
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
