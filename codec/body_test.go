// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// account is the lengths that were freed.
type account []int

func (a *account) Freed(bytes int) { *a = append(*a, bytes) }

// Bytes are counted by the first who charges them, until nobody holds them.
func TestBodyIsCharged(t *testing.T) {
	var first, second account
	b := codec.NewBody([]byte("four"), nil)
	if b.Charged() {
		t.Error("it is charged by nobody")
	}
	b.Charge(&first)
	b.Charge(&second)
	if !b.Charged() {
		t.Error("it is not charged")
	}
	b.Retain().Release()
	if len(first) > 0 {
		t.Error("it is freed while somebody holds it")
	}
	if b.Release(); len(first) != 1 || first[0] != 4 || len(second) > 0 {
		t.Errorf("freed %v of the first and %v of the second", first, second)
	}
}

// A Body that is gone stays so.
func TestBodyAfterItsRelease(t *testing.T) {
	for name, use := range map[string]func(*codec.Body){"retain": func(b *codec.Body) { b.Retain() }, "release": (*codec.Body).Release} {
		b := codec.NewBody(nil, nil)
		b.Release()
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			use(b)
		}()
	}
}

// What goes into logs names no key that the sender made up.
func TestErrorTexts(t *testing.T) {
	label := func(key string) string {
		return `{"metadata":{"labels":{"` + key + `":"","` + key + `":""}}}`
	}
	const most = 253 + 1 + 63
	for _, tt := range []struct{ object, text, detail string }{
		{label("a/b"), "invalid admission request at /metadata/labels: duplicate key", "invalid admission request at /metadata/labels/a~1b: duplicate key"},
		{label(strings.Repeat("x", most)), "invalid admission request at /metadata/labels: duplicate key", "invalid admission request at /metadata/labels/" + strings.Repeat("x", most) + ": duplicate key"},
		{label(strings.Repeat("x", most+1)), "invalid admission request at /metadata/labels: duplicate key", "invalid admission request at /metadata/labels: duplicate key"},
		{`{}x`, "invalid admission request: not strict JSON at byte 2: expected nothing after the document", "invalid admission request: not strict JSON at byte 2: expected nothing after the document"},
	} {
		err := codec.ScanObject(new(codec.Object), []byte(tt.object))
		request := (*codec.RequestError)(nil)
		if !errors.As(err, &request) || err.Error() != tt.text || request.Detail() != tt.detail {
			t.Errorf("got %v", err)
		}
	}
	const head = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","userInfo":`
	for body, want := range map[string]string{
		`{"request":[tru]}`:              "invalid AdmissionReview at /request: not strict JSON at byte 12: expected a value",
		`{"kind":"a`:                     "invalid AdmissionReview at /kind: not strict JSON at byte 10: unexpected end",
		head + `{"extra":{"a":[],"a":[]`: "invalid AdmissionReview at /request/userInfo/extra: not strict JSON at byte 116: unexpected end",
		`x`:                              "invalid AdmissionReview: not strict JSON at byte 0: expected a value", `{"kind":"Pod"}`: "invalid AdmissionReview at /kind: must be AdmissionReview",
	} {
		if _, err := decode(t, body); err == nil || err.Error() != want {
			t.Errorf("%s: got %v", body, err)
		}
	}
}
