// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/codec"
)

func TestPayloads(t *testing.T) {
	r := mustDecode(t, plainReview().json())
	p := codec.NewPayloads(r)
	if got := p.Get(codec.V1, 0, nil); got != r.Body {
		t.Error("the received version is not the received Body")
	}
	beta := p.Get(codec.V1beta1, 0, nil)
	if !strings.Contains(string(beta.Bytes()), `"admission.k8s.io/v1beta1"`) {
		t.Errorf("got %s", beta.Bytes())
	}
	if again := p.Get(codec.V1beta1, 0, nil); again != beta {
		t.Error("one form was encoded twice")
	}
	held := beta.Retain()
	want := string(held.Bytes())

	mutated := p.Get(codec.V1, 1, []byte(`{"mutated":true}`))
	if !strings.Contains(string(mutated.Bytes()), `"object":{"mutated":true}`) || p.Get(codec.V1, 1, []byte(`{"mutated":true}`)) != mutated {
		t.Errorf("got %s", mutated.Bytes())
	}
	other := p.Get(codec.V1beta1, 1, []byte(`{"mutated":true}`))
	if other == mutated || p.Get(codec.V1, 1, []byte(`{"mutated":true}`)) != mutated {
		t.Error("two versions of a generation are not kept side by side")
	}
	p.Release()
	p.Reset(r)
	p.Get(codec.V1beta1, 0, nil)
	p.Release()
	if string(held.Bytes()) != want {
		t.Error("a retained form changed after Release")
	}
	held.Release()
}

func TestPayloadsReleaseTheirForms(t *testing.T) {
	r := mustDecode(t, plainReview().json())
	var p codec.Payloads
	p.Reset(r)
	first := p.Get(codec.V1, 1, []byte(`{}`))
	p.Get(codec.V1, 2, []byte(`{"a":1}`))
	if first.Bytes() != nil {
		t.Error("the form of an earlier generation is kept")
	}
	second := p.Get(codec.V1, 2, []byte(`{"a":1}`))
	if p.Release(); second.Bytes() != nil {
		t.Error("a form outlives Release")
	}
}
