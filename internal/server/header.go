// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"errors"
	"io"
	"math"
	"mime"
	"os"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// headerReceived is fasthttp's hook between the headers and the body. The hook
// cannot say no, except by way of the body's size: a request that is refused
// gets a length that stops fasthttp before it reads a byte of the body, and
// that tells notReceived why (docs/decisions/0004-refusing-before-the-body.md).
func (s *Server) headerReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	timeout, r := s.screen(h)
	if r != accepted {
		h.Del(fasthttp.HeaderExpect) // no "100 Continue" before the refusal
		h.SetContentLength(refusedLength + int(r))
		return fasthttp.RequestConfig{MaxRequestBodySize: 1}
	}
	return fasthttp.RequestConfig{
		ReadTimeout: max(time.Millisecond, min(s.cfg.BodyTimeout, budget(timeout, 0, s.cfg.MaxTimeout))),
	}
}

// refusedLength and the 255 numbers above it are Content-Lengths that screen
// lets nobody announce.
const refusedLength = math.MaxInt - math.MaxUint8

// refusedFor returns the refusal that a length stands for.
func refusedFor(contentLength int) refusal {
	if r := contentLength - refusedLength; r > int(accepted) && r < int(refusals) {
		return refusal(r)
	}
	return tooLarge
}

// notReceived is fasthttp's hook for a request that did not come to handle.
func (s *Server) notReceived(ctx *fasthttp.RequestCtx, err error) {
	s.refuse(ctx, reception(&ctx.Request.Header, err))
}

// reception maps fasthttp's errors.
func reception(h *fasthttp.RequestHeader, err error) refusal {
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return refusedFor(h.ContentLength())
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

// screen judges what stands before the body and returns what ?timeout= says.
func (s *Server) screen(h *fasthttp.RequestHeader) (time.Duration, refusal) {
	path, query := splitURI(h.RequestURI())
	timeout, isTimeout := parseTimeout(query, s.cfg.DefaultTimeout)
	_, isRoute := parseRoute(path)
	switch {
	case len(h.RequestURI()) > uriLimit:
		return 0, longURI
	case len(h.RawHeaders()) > headerLimit:
		return 0, longHeaders
	case hasTransferEncoding(h):
		return 0, noLength
	case !isRoute:
		return 0, noRoute
	case !h.IsPost():
		return 0, notPost
	case !isTimeout:
		return 0, badTimeout
	case !isExpected(h):
		return 0, unknownExpect
	case !isMediaType(h.ContentType()):
		return 0, wrongType
	case !isEncoding(h):
		return 0, wrongEncoding
	case h.ContentLength() > s.cfg.BodyLimit:
		return 0, tooLarge
	}
	return timeout, accepted
}

// hasTransferEncoding looks at the bytes as received: fasthttp drops the header
// in some of its forms.
func hasTransferEncoding(h *fasthttp.RequestHeader) bool {
	const name = fasthttp.HeaderTransferEncoding
	for rest := h.RawHeaders(); len(rest) > 0; {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if len(line) >= len(name) && bytes.EqualFold(line[:len(name)], []byte(name)) {
			return true
		}
	}
	return false
}

func isExpected(h *fasthttp.RequestHeader) bool {
	for _, value := range h.PeekAll(fasthttp.HeaderExpect) {
		if string(value) != "100-continue" {
			return false
		}
	}
	return true
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

func isEncoding(h *fasthttp.RequestHeader) bool {
	switch values := h.PeekAll(fasthttp.HeaderContentEncoding); len(values) {
	case 0:
		return true
	case 1:
		_, ok := compression(values[0])
		return ok
	}
	return false
}
