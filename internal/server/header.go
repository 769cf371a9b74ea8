// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"os"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// headerReceived is fasthttp's hook between the headers and the body. It makes
// fasthttp believe that the caller waits for "100 Continue": then it calls the
// hook for that, headIsRead, which has the connection, before it reads the body
// (docs/decisions/0004-refusing-before-the-body.md).
func headerReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	h.Set(fasthttp.HeaderExpect, continue100)
	return fasthttp.RequestConfig{}
}

// unlimited is the length of a body that ends where the connection does, and is not
// one that fasthttp's own parser finds.
const unlimited = -3

// headIsRead makes fasthttp hand over what it has read beyond the head, and call
// handle: it reads a body up to the end of the connection, which conn says is here.
// The body is ours to read then. What fasthttp writes to make the caller go on is
// dropped.
func (s *Server) headIsRead(ctx *fasthttp.RequestCtx) int {
	c, h := connOf(ctx), &ctx.Request.Header
	c.listener.heads.end(c)
	c.announced = h.ContentLength()
	h.SetContentLength(unlimited)
	s.memory.buffers.put(ctx.Request.SwapBody(s.memory.buffers.get()))
	c.handed, c.muted = true, true
	return fasthttp.StatusContinue
}

// notReceived is fasthttp's hook for a request that did not come to handle.
func (s *Server) notReceived(ctx *fasthttp.RequestCtx, err error) {
	s.refuse(ctx, reception(err))
}

// reception maps fasthttp's errors.
func reception(err error) refusal {
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.Is(err, fasthttp.ErrUnsupportedTransferEncoding):
		return noLength
	case errors.As(err, &small):
		return longHeaders
	case errors.Is(err, os.ErrDeadlineExceeded):
		return tooSlow
	case errors.Is(err, io.ErrUnexpectedEOF):
		return cutShort
	}
	return malformed
}

// screen judges what stands before the body, and returns what ?timeout= says
// and whether the caller waits for "100 Continue".
func (s *Server) screen(h *fasthttp.RequestHeader) (timeout time.Duration, asks bool, r refusal) {
	path, query := splitURI(h.RequestURI())
	timeout, isTimeout := parseTimeout(query, s.cfg.DefaultTimeout)
	_, isRoute := parseRoute(path)
	encoded, asks, isExpected := rawHeaders(h.RawHeaders())
	switch {
	case len(h.RequestURI()) > uriLimit:
		r = longURI
	case len(h.RawHeaders()) > headerLimit:
		r = longHeaders
	case encoded:
		r = noLength
	case !isRoute:
		r = noRoute
	case !h.IsPost():
		r = notPost
	case !isTimeout:
		r = badTimeout
	case !isExpected:
		r = unknownExpect
	case !isMediaType(h.ContentType()):
		r = wrongType
	case !s.isEncoding(h):
		r = wrongEncoding
	}
	return timeout, asks, r
}

// continue100 is the only expectation that we meet.
const continue100 = "100-continue"

// rawHeaders looks at the lines as received: fasthttp drops Transfer-Encoding in some
// of its forms, and headerReceived has overwritten Expect. It tells whether there is
// any Transfer-Encoding, and whether there is an Expect, and none that we do not meet.
func rawHeaders(rest []byte) (encoded, asks, isExpected bool) {
	isExpected = true
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		switch {
		case hasPrefixFold(line, fasthttp.HeaderTransferEncoding):
			encoded = true
		case hasPrefixFold(line, fasthttp.HeaderExpect+":"):
			asks = true
			isExpected = isExpected && string(bytes.TrimSpace(line[len(fasthttp.HeaderExpect)+1:])) == continue100
		}
	}
	return encoded, asks, isExpected
}

func hasPrefixFold(line []byte, prefix string) bool {
	return len(line) >= len(prefix) && line[0]|0x20 == prefix[0]|0x20 && bytes.EqualFold(line[:len(prefix)], []byte(prefix))
}

func isMediaType(contentType []byte) bool {
	_, ok := mediaEncoding(contentType)
	return ok
}

// mediaEncoding accepts application/json, in UTF-8 if a charset is given (A8),
// and Kubernetes' protobuf (A9).
func mediaEncoding(contentType []byte) (e codec.Encoding, ok bool) {
	if string(contentType) == codec.MediaTypeJSON {
		return codec.JSON, true
	}
	mediaType, params, err := mime.ParseMediaType(string(contentType))
	switch {
	case err != nil:
		return 0, false
	case mediaType == codec.MediaTypeProtobuf:
		return codec.Protobuf, true
	case mediaType != codec.MediaTypeJSON:
		return 0, false
	}
	charset, ok := params["charset"]
	return codec.JSON, !ok || strings.EqualFold(charset, "utf-8")
}

func (s *Server) isEncoding(h *fasthttp.RequestHeader) bool {
	switch values := h.PeekAll(fasthttp.HeaderContentEncoding); len(values) {
	case 0:
		return true
	case 1:
		_, ok := compression(values[0])
		return ok && s.cfg.Decompress
	}
	return false
}
