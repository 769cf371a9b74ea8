// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// saying is an answer that says so about what the webhook reads.
func saying(post, coding string) *fasthttp.Response {
	r := &fasthttp.Response{}
	if post != "" {
		r.Header.Set("Accept-Post", post)
	}
	if coding != "" {
		r.Header.Set("Accept-Encoding", coding)
	}
	return r
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
		{name: "pinned to protobuf", wire: Wire{Encoding: Protobuf}, post: "application/json", want: codec.Form{Encoding: codec.Protobuf}},
		{name: "pinned to native", wire: Wire{Encoding: ProtobufNative}, want: codec.Form{Encoding: codec.ProtobufNative}},
		{name: "codings are not wanted", coding: "gzip, zstd", size: large},
		{name: "the better coding", wire: Wire{Compression: CompressAuto}, coding: "gzip;q=1.0, zstd", size: large, want: codec.Form{Coding: codec.Zstd}},
		{name: "a coding that is refused", wire: Wire{Compression: CompressAuto}, coding: "zstd;q=0, gzip", size: large, want: codec.Form{Coding: codec.Gzip}},
		{name: "small reviews are not compressed", wire: Wire{Compression: CompressGzip}, size: small},
		{name: "pinned coding", wire: Wire{Compression: CompressGzip}, size: large, want: codec.Form{Coding: codec.Gzip}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var target Target
			target.language.learn(saying(row.post, row.coding), codec.Form{})
			row.want.Version = codec.V1
			if got := target.Form(codec.V1, row.wire, row.size, now); got != row.want {
				t.Errorf("%+v, want %+v", got, row.want)
			}
		})
	}
}

// What a webhook said is taken back by an answer to plain JSON that does not say it,
// and set aside for a while when it does not hold.
func TestLanguageIsForgotten(t *testing.T) {
	var target Target
	now := time.Now()
	sent := func(at time.Time) codec.Encoding { return target.Form(codec.V1, Wire{}, 0, at).Encoding }
	protobuf := codec.Form{Encoding: codec.Protobuf}

	target.language.learn(saying(codec.MediaTypeProtobuf, ""), codec.Form{})
	target.language.learn(saying("", ""), protobuf)
	if got := sent(now); got != codec.Protobuf {
		t.Errorf("an answer to protobuf has taken it back: %v", got)
	}
	target.language.refuse(now)
	if early, late := sent(now.Add(plainTime/2)), sent(now.Add(2*plainTime)); early != codec.JSON || late != codec.Protobuf {
		t.Errorf("%v while it is set aside, %v later", early, late)
	}
	target.language.learn(saying("", ""), codec.Form{})
	if got := sent(now.Add(2 * plainTime)); got != codec.JSON {
		t.Errorf("an answer to JSON that says nothing has not taken it back: %v", got)
	}
}
