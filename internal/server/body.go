// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"errors"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/registry"
)

// buffers recycles the memory of request bodies. It holds at most pooledBuffers
// of at most pooledBytes each, together 32 MiB: nearly all reviews are smaller,
// and more are seldom in flight.
type buffers struct {
	free chan []byte
	give func([]byte) // put, made once
}

const (
	pooledBuffers = 512
	pooledBytes   = 64 << 10
)

func newBuffers() *buffers {
	b := &buffers{free: make(chan []byte, pooledBuffers)}
	b.give = b.put
	return b
}

// get returns memory to overwrite, or nil. The length is the capacity: by the
// length fasthttp's pool learns how large bodies are.
func (b *buffers) get() []byte {
	select {
	case data := <-b.free:
		return data[:cap(data)]
	default:
		return nil
	}
}

// put takes data back. Nobody may use it any more.
func (b *buffers) put(data []byte) {
	if cap(data) == 0 || cap(data) > pooledBytes {
		return
	}
	select {
	case b.free <- data:
	default:
	}
}

// takeBody takes the request body over from ctx, so that calls may use it after
// the request is done, and leaves memory for a later request in its place. The
// caller releases the Body.
func (s *Server) takeBody(ctx *fasthttp.RequestCtx) *codec.Body {
	return codec.NewBody(ctx.Request.SwapBody(s.buffers.get()), s.buffers.give)
}

// plainBody returns body without its Content-Encoding, if it is within the
// cluster's own limit. The caller releases the result.
func (s *Server) plainBody(ctx *fasthttp.RequestCtx, body *codec.Body, cluster *registry.Cluster) (*codec.Body, refusal) {
	limit := s.cfg.BodyLimit
	if own := cluster.RequestBytes; own > 0 {
		limit = int(min(int64(limit), own))
	}
	header := ctx.Request.Header.ContentEncoding()
	switch {
	case len(header) > 0:
		return s.decompressed(header, body.Bytes(), limit)
	case body.Len() > limit:
		return nil, tooLarge
	}
	return body.Retain(), accepted
}

func (s *Server) decompressed(header, data []byte, limit int) (*codec.Body, refusal) {
	encoding, _ := compression(header) // screen has seen that it is one
	plain, err := codec.Decompress(s.buffers.get()[:0], encoding, data, limit)
	switch {
	case errors.Is(err, codec.ErrTooLarge):
		return nil, tooLarge
	case err != nil:
		return nil, badEncoding
	}
	return codec.NewBody(plain, s.buffers.give), accepted
}

// compression returns the Content-Encoding as codec.Decompress spells it.
func compression(header []byte) (encoding string, ok bool) {
	for _, known := range []string{"gzip", "zstd"} {
		if bytes.EqualFold(header, []byte(known)) {
			return known, true
		}
	}
	return "", false
}
