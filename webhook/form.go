// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/codec"
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

// ParseEncoding returns the Encoding that configurations spell so, Auto for any
// other word.
func ParseEncoding(s string) Encoding {
	switch s {
	case "JSON":
		return JSON
	case "Protobuf":
		return Protobuf
	case "ProtobufNative":
		return ProtobufNative
	}
	return Auto
}

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

const (
	// leastCompressed is the size in bytes from which compression can pay: what is
	// smaller fits, with its header, into the first flight of a connection, ten
	// segments (docs/decisions/0011-payload-forms.md).
	leastCompressed = 14_000
	// plainTime is how long a Target that rejects what it said it reads is sent
	// JSON.
	plainTime = time.Minute
)

// What a webhook says that it reads.
const (
	readsProtobuf = 1 << iota
	readsNative
	readsGzip
	readsZstd
)

// language is what a Target has said that it reads. It is safe for concurrent use.
type language struct {
	reads      atomic.Uint32
	plainUntil atomic.Int64 // in Unix nanoseconds
}

// Form returns the form for a review of size bytes, sent now.
func (t *Target) Form(v codec.Version, w Wire, size int, now time.Time) codec.Form {
	form := codec.Form{Version: v}
	reads := t.language.reads.Load()
	if reads != 0 && now.UnixNano() < t.language.plainUntil.Load() {
		reads = 0
	}
	switch {
	case w.Encoding == Protobuf, w.Encoding == Auto && reads&readsProtobuf != 0:
		form.Encoding = codec.Protobuf
	case w.Encoding == ProtobufNative:
		form.Encoding = codec.ProtobufNative
	}
	if w.Encoding == Auto && reads&readsNative != 0 {
		form.Encoding = codec.ProtobufNative
	}
	if size >= leastCompressed {
		form.Coding = w.Compression.coding(reads)
	}
	return form
}

// Learned reports whether anything of form is what the webhook has said that it
// reads, and not what it must be sent.
func (w Wire) Learned(form codec.Form) bool {
	return w.Encoding == Auto && form.Encoding != codec.JSON || w.Compression == CompressAuto && form.Coding != codec.Identity
}

func (c Compression) coding(reads uint32) codec.Coding {
	switch {
	case c == CompressZstd, c == CompressAuto && reads&readsZstd != 0:
		return codec.Zstd
	case c == CompressGzip, c == CompressAuto && reads&readsGzip != 0:
		return codec.Gzip
	}
	return codec.Identity
}

// learn notes what an answer says that the webhook reads. One to a plain review
// that says nothing takes back what was said before.
func (l *language) learn(answer *fasthttp.Response, form codec.Form) {
	post, coding := answer.Header.Peek("Accept-Post"), answer.Header.Peek("Accept-Encoding")
	if len(post)+len(coding) == 0 && !isPlain(form) {
		return
	}
	if reads := readsPost(post) | readsCoding(coding); reads != l.reads.Load() {
		l.reads.Store(reads)
	}
}

// refuse has JSON sent for a while.
func (l *language) refuse(now time.Time) { l.plainUntil.Store(now.Add(plainTime).UnixNano()) }

func isPlain(f codec.Form) bool { return f.Encoding == codec.JSON && f.Coding == codec.Identity }

// readsPost reads a list of media types (W3C LDP, 7.1). It allocates nothing.
func readsPost(list []byte) (reads uint32) {
	for item := range bytes.SplitSeq(list, []byte(",")) {
		kind, parameters, _ := bytes.Cut(item, []byte(";"))
		if !bytes.EqualFold(bytes.TrimSpace(kind), []byte(codec.MediaTypeProtobuf)) {
			continue
		}
		reads |= readsProtobuf
		for parameter := range bytes.SplitSeq(parameters, []byte(";")) {
			if bytes.EqualFold(bytes.TrimSpace(parameter), []byte("objects=native")) {
				reads |= readsNative
			}
		}
	}
	return reads
}

// readsCoding reads a list of content codings (RFC 9110, 12.5.3).
func readsCoding(list []byte) (reads uint32) {
	for item := range bytes.SplitSeq(list, []byte(",")) {
		coding, weight, _ := bytes.Cut(item, []byte(";"))
		if isZero(weight) {
			continue
		}
		switch coding = bytes.TrimSpace(coding); {
		case bytes.EqualFold(coding, []byte("gzip")):
			reads |= readsGzip
		case bytes.EqualFold(coding, []byte("zstd")):
			reads |= readsZstd
		}
	}
	return reads
}

// isZero reports whether a weight says "not at all".
func isZero(weight []byte) bool {
	value, ok := bytes.CutPrefix(bytes.ToLower(bytes.TrimSpace(weight)), []byte("q=0"))
	return ok && len(bytes.Trim(value, ".0")) == 0
}
