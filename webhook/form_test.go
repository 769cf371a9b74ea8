// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bufio"
	"bytes"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// saying is an answer that says so about what the webhook reads.
func saying(post, coding string) *transport.Reply {
	return &transport.Reply{AcceptPost: []byte(post), AcceptEncoding: []byte(coding)}
}

func TestForm(t *testing.T) {
	const small, large = 1 << 10, 1 << 20
	const protobuf = "application/vnd.kubernetes.protobuf"
	now := time.Now()
	for _, row := range []struct {
		name         string
		wire         Wire
		post, coding string
		size         int
		want         codec.Form
	}{
		{name: "nothing is known", size: large},
		{name: "protobuf", post: "application/json, " + protobuf, size: large, want: codec.Form{Encoding: codec.Protobuf}},
		{name: "native", post: protobuf + "; objects=native", want: codec.Form{Encoding: codec.ProtobufNative}},
		{name: "another type's parameter", post: "application/json;objects=native", want: codec.Form{}},
		{name: "pinned to JSON", wire: Wire{Encoding: JSON}, post: protobuf},
		{name: "pinned to JSON where native is read", wire: Wire{Encoding: JSON}, post: protobuf + "; objects=native"},
		{name: "pinned to protobuf where native is read", wire: Wire{Encoding: Protobuf}, post: protobuf + "; objects=native", want: codec.Form{Encoding: codec.Protobuf}},
		{name: "pinned to protobuf", wire: Wire{Encoding: Protobuf}, post: "application/json", want: codec.Form{Encoding: codec.Protobuf}},
		{name: "pinned to native", wire: Wire{Encoding: ProtobufNative}, want: codec.Form{Encoding: codec.ProtobufNative}},
		{name: "codings are not wanted", coding: "gzip, zstd", size: large},
		{name: "the better coding", wire: Wire{Compression: CompressAuto}, coding: "gzip;q=1.0, zstd", size: large, want: codec.Form{Coding: codec.Zstd}},
		{name: "a coding that is refused", wire: Wire{Compression: CompressAuto}, coding: "zstd;q=0, gzip", size: large, want: codec.Form{Coding: codec.Gzip}},
		{name: "a coding that is refused in full", wire: Wire{Compression: CompressAuto}, coding: "zstd; q=0.000, gzip", size: large, want: codec.Form{Coding: codec.Gzip}},
		{name: "a coding that is little liked", wire: Wire{Compression: CompressAuto}, coding: "zstd;q=0.001", size: large, want: codec.Form{Coding: codec.Zstd}},
		{name: "pinned coding of many", wire: Wire{Compression: CompressGzip}, coding: "zstd", size: large, want: codec.Form{Coding: codec.Gzip}},
		{name: "the other pinned coding", wire: Wire{Compression: CompressZstd}, coding: "gzip", size: large, want: codec.Form{Coding: codec.Zstd}},
		{name: "reviews of 14,000 bytes are", wire: Wire{Compression: CompressGzip}, size: 14_000, want: codec.Form{Coding: codec.Gzip}},
		{name: "smaller ones are not", wire: Wire{Compression: CompressGzip}, size: 13_999},
		{name: "small reviews are not compressed", wire: Wire{Compression: CompressGzip}, size: small},
		{name: "pinned coding", wire: Wire{Compression: CompressGzip}, size: large, want: codec.Form{Coding: codec.Gzip}},
	} {
		t.Run(row.name, func(t *testing.T) {
			target := new(transport.Target)
			negotiationOf(target).hear(saying(row.post, row.coding), true, at(now))
			row.want.Version = codec.V1
			if got := FormOf(target, codec.V1, row.wire, row.size, at(now)); got != row.want {
				t.Errorf("%+v, want %+v", got, row.want)
			}
		})
	}
}

// Configurations spell encodings so.
func TestParseEncoding(t *testing.T) {
	for text, want := range map[string]Encoding{"JSON": JSON, "Protobuf": Protobuf, "ProtobufNative": ProtobufNative, "Auto": Auto, "": Auto} {
		if got := ParseEncoding(text); got != want {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// What is learned is taken back alone: what is pinned stays.
func TestPlainFormKeepsWhatIsPinned(t *testing.T) {
	learned := codec.Form{Version: codec.V1, Encoding: codec.Protobuf, Coding: codec.Zstd}
	for _, row := range []struct {
		wire Wire
		want codec.Form
	}{
		{Wire{Auto, CompressAuto}, codec.Form{}},
		{Wire{Protobuf, CompressAuto}, codec.Form{Encoding: codec.Protobuf}},
		{Wire{Auto, CompressZstd}, codec.Form{Coding: codec.Zstd}},
		{Wire{Protobuf, CompressZstd}, codec.Form{Encoding: codec.Protobuf, Coding: codec.Zstd}},
	} {
		row.want.Version = codec.V1
		if got := row.wire.Plain(learned); got != row.want {
			t.Errorf("%+v: %+v, want %+v", row.wire, got, row.want)
		}
	}
}

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
