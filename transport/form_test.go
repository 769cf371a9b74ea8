// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"strings"
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
			var target Target
			target.language.learn(saying(row.post, row.coding), true, now)
			row.want.Version = codec.V1
			if got := target.Form(codec.V1, row.wire, row.size, now); got != row.want {
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

// What a webhook said is taken back by an answer that does not say it.
func TestLanguageIsForgotten(t *testing.T) {
	now := time.Now()
	binary := saying("", "")
	binary.Header.SetContentType(codec.MediaTypeProtobuf)
	for _, row := range []struct {
		name    string
		answer  *fasthttp.Response
		verdict bool
		want    string
	}{
		{"a verdict that says nothing", saying("", ""), true, "JSON"},
		{"one that says less", saying("application/json", "gzip"), true, "JSON, gzip"},
		{"one in protobuf", binary, true, "ProtobufNative, zstd, gzip"},
		{"none, which may be a proxy's", saying("", ""), false, "ProtobufNative, zstd, gzip"},
		{"none that says less", saying("application/json", "gzip"), false, "JSON, gzip"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var target Target
			all := saying(codec.MediaTypeProtobuf+";objects=native", "gzip, zstd")
			target.language.learn(all, true, now)
			changed, lost := target.language.learn(row.answer, row.verdict, now)
			later := now.Add(2 * plainTime)
			if got := target.Reads(later); got != row.want || lost != (row.want != "ProtobufNative, zstd, gzip") || changed != lost {
				t.Errorf("%s, want %s; changed %v, lost %v", got, row.want, changed, lost)
			}
			if !lost {
				return
			}
			if changed, _ = target.language.learn(all, true, now); changed {
				t.Error("what was taken back is believed again at once")
			}
			if changed, lost = target.language.learn(all, true, later); !changed || lost {
				t.Error("what was taken back is never believed again")
			}
		})
	}
}

// What does not hold is set aside, each time for longer until it holds.
func TestLanguageIsSetAside(t *testing.T) {
	var target Target
	l, now := &target.language, time.Now()
	l.learn(saying(codec.MediaTypeProtobuf, ""), true, now)
	sent := func() codec.Encoding { return target.Form(codec.V1, Wire{}, 0, now).Encoding }
	for _, want := range []time.Duration{plainTime, 2 * plainTime, 4 * plainTime, 8 * plainTime, 16 * plainTime, 32 * plainTime, maxPlainTime, maxPlainTime} {
		first, again := l.refuse(now), l.refuse(now)
		wait := time.Unix(0, l.plainUntil.Load()).Sub(now)
		if wait != want || !first || again {
			t.Errorf("set aside for %v, want %v, for the first time %v, and again %v", wait, want, first, again)
		}
		if got := target.Reads(now); sent() != codec.JSON || !strings.HasPrefix(got, "JSON until ") || !strings.HasSuffix(got, ", then Protobuf") {
			t.Errorf("%v is sent while it is set aside, and Reads is %s", sent(), got)
		}
		if now = now.Add(wait); sent() != codec.Protobuf {
			t.Errorf("%v is sent later", sent())
		}
	}
	l.confirm()
	if l.refuse(now); l.plainUntil.Load() != now.Add(plainTime).UnixNano() {
		t.Error("set aside for longer after it has held")
	}
}
