// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bufio"
	"net/textproto"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// The header says what the body is, and what an answer may be.
func TestPayloadForms(t *testing.T) {
	const protobuf = "application/vnd.kubernetes.protobuf"
	for form, want := range map[codec.Form]textproto.MIMEHeader{
		{}:                               {"Content-Type": {"application/json"}, "Accept": {"application/json, */*"}},
		{Coding: codec.Gzip}:             {"Content-Type": {"application/json"}, "Accept": {"application/json, */*"}, "Content-Encoding": {"gzip"}},
		{Coding: codec.Zstd}:             {"Content-Type": {"application/json"}, "Accept": {"application/json, */*"}, "Content-Encoding": {"zstd"}},
		{Encoding: codec.Protobuf}:       {"Content-Type": {protobuf}, "Accept": {protobuf + ", application/json, */*"}},
		{Encoding: codec.ProtobufNative}: {"Content-Type": {protobuf}, "Accept": {protobuf + ", application/json, */*"}},
		{Encoding: codec.Protobuf, Coding: codec.Gzip}: {"Content-Type": {protobuf}, "Accept": {protobuf + ", application/json, */*"}, "Content-Encoding": {"gzip"}},
		{Encoding: codec.Protobuf, Coding: codec.Zstd}: {"Content-Type": {protobuf}, "Accept": {protobuf + ", application/json, */*"}, "Content-Encoding": {"zstd"}},
	} {
		m := NewMessage(Request{Target: new(transport.Target), Body: codec.NewBody([]byte("{}"), nil), Form: form})
		payload, err := m.Payload(false)
		if err != nil || string(payload.Body) != "{}" {
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
