// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bufio"
	"bytes"
	"net/textproto"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// The header says what the body is, and what an answer may be.
func TestPayloadForms(t *testing.T) {
	const protobuf = "application/vnd.kubernetes.protobuf"
	v := view(t)
	defer v.Release()
	for form, want := range map[codec.Form]textproto.MIMEHeader{
		{}:                               {"Content-Type": {"application/json"}, "Accept": {"application/json, */*"}},
		{Coding: codec.Gzip}:             {"Content-Type": {"application/json"}, "Accept": {"application/json, */*"}, "Content-Encoding": {"gzip"}},
		{Coding: codec.Zstd}:             {"Content-Type": {"application/json"}, "Accept": {"application/json, */*"}, "Content-Encoding": {"zstd"}},
		{Encoding: codec.Protobuf}:       {"Content-Type": {protobuf}, "Accept": {protobuf + ", application/json, */*"}},
		{Encoding: codec.ProtobufNative}: {"Content-Type": {protobuf}, "Accept": {protobuf + ", application/json, */*"}},
		{Encoding: codec.Protobuf, Coding: codec.Gzip}: {"Content-Type": {protobuf}, "Accept": {protobuf + ", application/json, */*"}, "Content-Encoding": {"gzip"}},
		{Encoding: codec.Protobuf, Coding: codec.Zstd}: {"Content-Type": {protobuf}, "Accept": {protobuf + ", application/json, */*"}, "Content-Encoding": {"zstd"}},
	} {
		form.Version = codec.V1
		m, err := (&Hook{Target: new(transport.Target)}).Message(&hook.Question{View: v}, form)
		if err != nil {
			t.Fatal(err)
		}
		payload, err := m.Payload(false)
		if err != nil || !bytes.Equal(payload.Body, m.Body.Bytes()) {
			t.Errorf("%+v: body %q, %v", form, payload.Body, err)
		}
		got, err := textproto.NewReader(bufio.NewReader(strings.NewReader(payload.Fields + "\r\n"))).ReadMIMEHeader()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", form, diff)
		}
		m.Release()
	}
}

// A Message holds the review until its last reference is gone, and then nothing: the
// next call has nothing of it.
func TestMessageHoldsTheReview(t *testing.T) {
	v := view(t)
	m := messageTo(t, &Hook{Target: new(transport.Target)}, v, codec.Form{Version: codec.V1})
	v.Release() // by who has made the call
	m.Retain()
	m.Release()
	if p, err := m.Payload(false); err != nil || string(p.Body) != received {
		t.Errorf("%q, %v", p.Body, err)
	}
	if m.Release(); m.Body != nil || m.Want.UID != nil || m.question.View != nil || m.target != nil || m.negotiation != nil {
		t.Errorf("it is kept for the next call: %+v", m.content)
	}
}

// Messages are taken from a pool.
func TestMessageAllocations(t *testing.T) {
	if raced {
		t.Skip("the race detector empties pools")
	}
	v := view(t)
	defer v.Release()
	h, q := &Hook{Target: new(transport.Target)}, &hook.Question{View: v}
	once := func() {
		m, err := h.Message(q, codec.Form{Version: codec.V1})
		if err != nil {
			t.Fatal(err)
		}
		m.Release()
	}
	if n := testing.AllocsPerRun(100, once); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
