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
)

// headerReceived is fasthttp's hook between the headers and the body. The hook
// cannot say no, except by way of the body's size: a request that is refused
// gets a length that stops fasthttp before it reads a byte of the body, and
// that tells notReceived why (docs/decisions/0004).
func (s *Server) headerReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	if r := s.screen(h); r != accepted {
		h.Del(fasthttp.HeaderExpect) // no "100 Continue" before the refusal
		h.SetContentLength(refusedLength + int(r))
		return fasthttp.RequestConfig{MaxRequestBodySize: 1}
	}
	_, query := splitURI(h.RequestURI())
	timeout, _ := parseTimeout(query, s.cfg.DefaultTimeout)
	return fasthttp.RequestConfig{
		ReadTimeout: max(time.Millisecond, min(s.cfg.BodyTimeout, budget(timeout, 0, s.cfg.MaxTimeout))),
	}
}

// refusedLength and the 255 numbers above it are Content-Lengths that screen
// lets nobody announce.
const refusedLength = math.MaxInt - math.MaxUint8

// notReceived is fasthttp's hook for a request that did not come to handle.
func (s *Server) notReceived(ctx *fasthttp.RequestCtx, err error) {
	s.refuse(ctx, reception(&ctx.Request.Header, err), "")
}

// reception maps fasthttp's errors.
func reception(h *fasthttp.RequestHeader, err error) refusal {
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return refusal(h.ContentLength() - refusedLength)
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

// screen judges what stands before the body.
func (s *Server) screen(h *fasthttp.RequestHeader) refusal {
	path, query := splitURI(h.RequestURI())
	switch {
	case len(h.RequestURI()) > uriLimit:
		return longURI
	case len(h.RawHeaders()) > headerLimit:
		return longHeaders
	case hasTransferEncoding(h):
		return noLength
	case !isRoute(path):
		return noRoute
	case !h.IsPost():
		return notPost
	case !isTimeout(query):
		return badTimeout
	case !isExpected(h):
		return unknownExpect
	case !isJSON(h.ContentType()):
		return wrongType
	case !isEncoding(h):
		return wrongEncoding
	case h.ContentLength() > s.cfg.BodyLimit:
		return tooLarge
	}
	return accepted
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

func isRoute(path []byte) bool {
	_, ok := parseRoute(path)
	return ok
}

func isTimeout(query []byte) bool {
	_, ok := parseTimeout(query, time.Second)
	return ok
}

func isExpected(h *fasthttp.RequestHeader) bool {
	for _, value := range h.PeekAll(fasthttp.HeaderExpect) {
		if string(value) != "100-continue" {
			return false
		}
	}
	return true
}

// isJSON accepts application/json, in UTF-8 if a charset is given (A8).
func isJSON(contentType []byte) bool {
	if string(contentType) == "application/json" {
		return true
	}
	mediaType, params, err := mime.ParseMediaType(string(contentType))
	if err != nil || mediaType != "application/json" {
		return false
	}
	charset, ok := params["charset"]
	return !ok || strings.EqualFold(charset, "utf-8")
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
