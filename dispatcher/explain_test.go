// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"testing"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/transport"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// The payload that is explained is the one that is sent.
func TestPayloadForm(t *testing.T) {
	json := codec.Review{Version: codec.V1, Body: codec.NewBody(make([]byte, 1<<10), nil)}
	large := codec.Review{Version: codec.V1, Body: codec.NewBody(make([]byte, 1<<20), nil)}
	protobuf := codec.Review{Version: codec.V1, Encoding: codec.Protobuf, Body: json.Body}
	for _, row := range []struct {
		review  *codec.Review
		version codec.Version
		wire    webhook.Wire
		want    string
	}{
		{&json, codec.V1, webhook.Wire{}, "JSON v1 at first, as received"},
		{&json, codec.V1, webhook.Wire{Encoding: webhook.JSON}, "JSON v1, as received"},
		{&json, codec.V1beta1, webhook.Wire{Encoding: webhook.JSON}, "JSON v1beta1, spliced"},
		{&json, codec.V1, webhook.Wire{Encoding: webhook.Protobuf, Compression: webhook.CompressZstd}, "Protobuf v1"},
		{&large, codec.V1, webhook.Wire{Encoding: webhook.Protobuf, Compression: webhook.CompressZstd}, "Protobuf v1, zstd"},
		{&large, codec.V1, webhook.Wire{Encoding: webhook.JSON, Compression: webhook.CompressAuto}, "JSON v1 at first, as received"},
		{&json, codec.V1, webhook.Wire{Encoding: webhook.ProtobufNative}, "ProtobufNative v1, or Protobuf where that would lose something"},
		{&protobuf, codec.V1, webhook.Wire{Encoding: webhook.Protobuf}, "Protobuf v1, as received"},
		{&protobuf, codec.V1, webhook.Wire{Encoding: webhook.JSON}, "JSON v1"},
	} {
		target, err := transport.NewTarget(transport.TargetSpec{URL: "https://policy.example.com/"})
		if err != nil {
			t.Fatal(err)
		}
		w := &chain.Entry{Version: row.version, Wire: row.wire, Target: target}
		if got := payloadForm(w, row.review); got != row.want {
			t.Errorf("%+v: %q, want %q", row.wire, got, row.want)
		}
	}
}
