// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// reading is what a webhook says that it reads beside plain JSON.
type reading uint32

const (
	readsProtobuf reading = 1 << iota
	readsNative
	readsGzip
	readsZstd
)

// readingOf is what an answer says. ok is false where it says nothing.
func readingOf(reply *transport.Reply) (r reading, ok bool) {
	post, coding := reply.AcceptPost, reply.AcceptEncoding
	return readsPost(post) | readsCoding(coding), len(post)+len(coding) > 0
}

// String returns the best encoding and the codings, as configurations spell them.
func (r reading) String() string {
	text := codec.JSON.String()
	switch {
	case r&readsNative != 0:
		text = codec.ProtobufNative.String()
	case r&readsProtobuf != 0:
		text = codec.Protobuf.String()
	}
	if r&readsZstd != 0 {
		text += ", " + codec.Zstd.String()
	}
	if r&readsGzip != 0 {
		text += ", " + codec.Gzip.String()
	}
	return text
}

// readsPost reads a list of media types (W3C LDP, 7.1). It allocates nothing.
func readsPost(list []byte) (reads reading) {
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
func readsCoding(list []byte) (reads reading) {
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
