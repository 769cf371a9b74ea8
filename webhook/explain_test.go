// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"testing"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// The payload that is explained is the one that is sent.
func TestPayloadForm(t *testing.T) {
	json := codec.Review{Version: codec.V1, Body: codec.NewBody(make([]byte, 1<<10), nil)}
	large := codec.Review{Version: codec.V1, Body: codec.NewBody(make([]byte, 1<<20), nil)}
	protobuf := codec.Review{Version: codec.V1, Encoding: codec.Protobuf, Body: json.Body}
	for _, row := range []struct {
		review  *codec.Review
		version codec.Version
		wire    Wire
		want    string
	}{
		{&json, codec.V1, Wire{}, "JSON v1 at first, as received"},
		{&json, codec.V1, Wire{Encoding: JSON}, "JSON v1, as received"},
		{&json, codec.V1beta1, Wire{Encoding: JSON}, "JSON v1beta1, spliced"},
		{&json, codec.V1beta1, Wire{Encoding: Protobuf}, "Protobuf v1beta1"},
		{&protobuf, codec.V1beta1, Wire{Encoding: JSON}, "JSON v1beta1"},
		{&large, codec.V1, Wire{Encoding: JSON, Compression: CompressGzip}, "JSON v1, gzip"},
		{&json, codec.V1, Wire{Encoding: Protobuf, Compression: CompressZstd}, "Protobuf v1"},
		{&large, codec.V1, Wire{Encoding: Protobuf, Compression: CompressZstd}, "Protobuf v1, zstd"},
		{&large, codec.V1, Wire{Encoding: JSON, Compression: CompressAuto}, "JSON v1 at first, as received"},
		{&json, codec.V1, Wire{Encoding: ProtobufNative}, "ProtobufNative v1, or Protobuf where that would lose something"},
		{&protobuf, codec.V1, Wire{Encoding: Protobuf}, "Protobuf v1, as received"},
		{&protobuf, codec.V1, Wire{Encoding: JSON}, "JSON v1"},
	} {
		target, err := transport.NewTarget(transport.TargetSpec{URL: "https://policy.example.com/"})
		if err != nil {
			t.Fatal(err)
		}
		h := &Hook{Version: row.version, Wire: row.wire, Target: target}
		v := hook.NewView(hook.Source{Review: row.review})
		if got, err := h.Explain(v); got.Payload != row.want || err != nil {
			t.Errorf("%+v: %q, want %q", row.wire, got.Payload, row.want)
		}
		v.Release()
	}
}
