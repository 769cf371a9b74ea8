// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"slices"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// Wire is how reviews are to be written for a webhook. The zero value is what the
// webhook says it reads, uncompressed.
type Wire struct {
	Encoding    Encoding
	Compression Compression
}

// Encoding is one of codec's encodings, or Auto.
type Encoding uint8

// The encodings. Auto is JSON until an answer of the webhook lists
// application/vnd.kubernetes.protobuf in Accept-Post; the others are what is sent,
// whatever the webhook says.
const (
	Auto Encoding = iota
	JSON
	Protobuf
	ProtobufNative
)

// Encodings are all of them, as configurations spell them.
var Encodings = [...]string{Auto: "Auto", JSON: codec.JSON.String(), Protobuf: codec.Protobuf.String(), ProtobufNative: codec.ProtobufNative.String()}

func (e Encoding) String() string { return Encodings[e] }

// ParseEncoding returns the Encoding that configurations spell so, Auto for any
// other word.
func ParseEncoding(s string) Encoding { return Encoding(max(0, slices.Index(Encodings[:], s))) }

// Compression is one of codec's content codings, or what the webhook says that it
// reads in Accept-Encoding (RFC 7694).
type Compression uint8

// The compressions, of reviews of leastCompressed and more.
const (
	Uncompressed Compression = iota
	CompressAuto
	CompressGzip
	CompressZstd
)

// Compressions are all of them, as a WebhookBinding spells them.
var Compressions = [...]string{Uncompressed: "Off", CompressAuto: "Auto", CompressGzip: "Gzip", CompressZstd: "Zstd"}

// leastCompressed is the size in bytes from which compression can pay: what is
// smaller fits, with its header, into the first flight of a connection, ten
// segments (docs/decisions/0011-payload-forms.md).
const leastCompressed = 14_000

// FormOf returns the form for a review of size bytes to t, sent now.
func FormOf(t *transport.Target, v codec.Version, w Wire, size int, now func() time.Time) codec.Form {
	return w.form(v, negotiationOf(t).reads(now), size)
}

func (w Wire) form(v codec.Version, reads reading, size int) codec.Form {
	form := codec.Form{Version: v}
	switch {
	case w.Encoding == ProtobufNative, w.Encoding == Auto && reads&readsNative != 0:
		form.Encoding = codec.ProtobufNative
	case w.Encoding == Protobuf, w.Encoding == Auto && reads&readsProtobuf != 0:
		form.Encoding = codec.Protobuf
	}
	if size >= leastCompressed {
		form.Coding = w.Compression.coding(reads)
	}
	return form
}

// Plain returns form without what of it the webhook has said that it reads: what it
// must be sent in any case.
func (w Wire) Plain(form codec.Form) codec.Form {
	if w.Encoding == Auto {
		form.Encoding = codec.JSON
	}
	if w.Compression == CompressAuto {
		form.Coding = codec.Identity
	}
	return form
}

func (c Compression) coding(reads reading) codec.Coding {
	switch {
	case c == CompressZstd, c == CompressAuto && reads&readsZstd != 0:
		return codec.Zstd
	case c == CompressGzip, c == CompressAuto && reads&readsGzip != 0:
		return codec.Gzip
	}
	return codec.Identity
}

// formFields are the header fields of a form. A webhook that is sent protobuf may
// answer in it.
func formFields(f codec.Form) string {
	const (
		json     = "Content-Type: application/json\r\nAccept: application/json, */*\r\n"
		protobuf = "Content-Type: application/vnd.kubernetes.protobuf\r\nAccept: application/vnd.kubernetes.protobuf, application/json, */*\r\n"
		gzip     = "Content-Encoding: gzip\r\n"
		zstd     = "Content-Encoding: zstd\r\n"
	)
	isJSON := f.Encoding == codec.JSON
	switch {
	case isJSON && f.Coding == codec.Gzip:
		return json + gzip
	case isJSON && f.Coding == codec.Zstd:
		return json + zstd
	case isJSON:
		return json
	case f.Coding == codec.Gzip:
		return protobuf + gzip
	case f.Coding == codec.Zstd:
		return protobuf + zstd
	}
	return protobuf
}
