// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"testing"

	"github.com/admission-dispatcher/dispatcher/codec"
)

func TestAnswerEncoding(t *testing.T) {
	const protobuf, json = "application/vnd.kubernetes.protobuf", "application/json"
	tests := []struct {
		contentType, body string
		sent, want        codec.Encoding
	}{
		{json, `{}`, codec.JSON, codec.JSON},
		{json, `{}`, codec.Protobuf, codec.JSON},
		{"", `{}`, codec.ProtobufNative, codec.JSON},
		{protobuf, "k8s\x00", codec.JSON, codec.Protobuf},
		{protobuf + " ; as=x", "", codec.Protobuf, codec.Protobuf},
		{"", "k8s\x00", codec.ProtobufNative, codec.Protobuf},
		{json, "k8s\x00", codec.Protobuf, codec.Protobuf},
		{json, "k8s\x00", codec.JSON, codec.JSON},
	}
	for _, tt := range tests {
		if got := codec.AnswerEncoding([]byte(tt.contentType), []byte(tt.body), tt.sent); got != tt.want {
			t.Errorf("%q with %q to %v: got %v, want %v", tt.contentType, tt.body, tt.sent, got, tt.want)
		}
	}
}
