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
