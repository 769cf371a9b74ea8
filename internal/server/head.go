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

	"github.com/admission-dispatcher/dispatcher/chain"
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

// head is what stands before the body, read once. Nothing else looks at the headers,
// but for the caller's trace. It borrows from the request.
type head struct {
	method, path  []byte // empty where the head did not come to its end
	route         route  // what the path asks for; zero: nothing that there is
	timeout       time.Duration
	host          []byte
	authorization authorization
	continues     bool           // the caller waits for "100 Continue"
	encoding      codec.Encoding // of the review
	compression   string         // of the body, as codec.Decompress spells it; empty: none
}

// readHead reads the head, and returns the first reason to refuse it. What of the head
// is good is there in any case: records tell who was refused.
func readHead(h *fasthttp.RequestHeader, cfg *Config) (head, refusal) {
	path, query, _ := bytes.Cut(h.RequestURI(), []byte("?"))
	route, isRoute := parseRoute(path)
	timeout, isTimeout := parseTimeout(query, cfg.DefaultTimeout)
	encoded, continues, isExpected := rawHeaders(h.RawHeaders())
	encoding, isMediaType := mediaEncoding(h.ContentType())
	compression, isCompression := contentEncoding(h.PeekAll(fasthttp.HeaderContentEncoding), cfg.Decompress)
	read := head{
		route: route, timeout: timeout, host: h.Host(), continues: continues, encoding: encoding, compression: compression,
		authorization: parseAuthorization(h.PeekAll(fasthttp.HeaderAuthorization)),
	}
	if len(h.RawHeaders()) > 0 {
		read.method, read.path = h.Method(), path
	}
	switch {
	case len(h.RequestURI()) > uriLimit:
		return read, longURI
	case len(h.RawHeaders()) > headerLimit:
		return read, longHeaders
	case encoded:
		return read, noLength
	case !isRoute:
		return read, noRoute
	case !h.IsPost():
		return read, notPost
	case !isTimeout:
		return read, badTimeout
	case !isExpected:
		return read, unknownExpect
	case !isMediaType:
		return read, wrongType
	case !isCompression:
		return read, wrongEncoding
	}
	return read, accepted
}

// continue100 is the only expectation that we meet.
const continue100 = "100-continue"

// rawHeaders looks at the lines as received: fasthttp drops Transfer-Encoding in some
// of its forms, and headerReceived has overwritten Expect. It tells whether there is
// any Transfer-Encoding, and whether there is an Expect, and none that we do not meet.
func rawHeaders(rest []byte) (encoded, continues, isExpected bool) {
	isExpected = true
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		switch {
		case hasPrefixFold(line, fasthttp.HeaderTransferEncoding):
			encoded = true
		case hasPrefixFold(line, fasthttp.HeaderExpect+":"):
			continues = true
			isExpected = isExpected && string(bytes.TrimSpace(line[len(fasthttp.HeaderExpect)+1:])) == continue100
		}
	}
	return encoded, continues, isExpected
}

func hasPrefixFold(line []byte, prefix string) bool {
	return len(line) >= len(prefix) && line[0]|0x20 == prefix[0]|0x20 && bytes.EqualFold(line[:len(prefix)], []byte(prefix))
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

// contentEncoding accepts none, and one that we know where that is switched on.
func contentEncoding(values [][]byte, decompress bool) (compression string, ok bool) {
	if len(values) == 0 {
		return "", true
	}
	for _, known := range []string{"gzip", "zstd"} {
		if bytes.EqualFold(values[0], []byte(known)) {
			return known, decompress && len(values) == 1
		}
	}
	return "", false
}

// authorization is what the header of that name says.
type authorization struct {
	shown bool   // there is one, whatever it says
	token []byte // of the scheme Bearer; empty: none, or more than one

	judged bool           // whether the token was looked up
	bearer chain.Identity // whose it is
	defect error          // why a JSON Web Token is not good
}

const bearer = "Bearer "

func parseAuthorization(values [][]byte) authorization {
	a := authorization{shown: len(values) > 0}
	if len(values) == 1 && len(values[0]) > len(bearer) && bytes.EqualFold(values[0][:len(bearer)], []byte(bearer)) {
		a.token = values[0][len(bearer):]
	}
	return a
}

// route is what a path asks for.
type route struct {
	cluster []byte // borrowed from the request
	secret  []byte // the path secret that is shown; empty: none. Borrowed
	phase   chain.Phase
	segment []byte // says which webhooks are considered; empty: all. Borrowed
}

const clustersPath = "/v1/clusters/"

// parseRoute reads the path as it was sent: nothing is decoded, nothing cleaned
// up, so that no two spellings name one cluster (A6), and a path secret has one (A23).
func parseRoute(path []byte) (r route, ok bool) {
	rest, ok := bytes.CutPrefix(path, []byte(clustersPath))
	if !ok {
		return route{}, false
	}
	cluster, rest, ok := bytes.Cut(rest, []byte("/"))
	if !ok || !isName(cluster) {
		return route{}, false
	}
	r.cluster = cluster
	if secret, behind, ok := bytes.Cut(rest, []byte("/")); ok && chain.IsPathSecret(secret) {
		r.secret, rest = secret, behind
	}
	phase, segment, further := bytes.Cut(rest, []byte("/"))
	if further && !chain.IsPathSegment(segment) {
		return route{}, false
	}
	r.segment = segment
	switch string(phase) {
	case chain.Validating.String():
		r.phase = chain.Validating
	case chain.Mutating.String():
		r.phase = chain.Mutating
	default:
		return route{}, false
	}
	return r, true
}

// isName tells what the name of a Cluster is made of.
func isName(b []byte) bool {
	for _, c := range b {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '.':
		default:
			return false
		}
	}
	return len(b) > 0
}

// parseTimeout returns the value of ?timeout= in a raw query, or byDefault if
// there is none. It must be a positive duration and stand there once (A20).
func parseTimeout(query []byte, byDefault time.Duration) (timeout time.Duration, ok bool) {
	timeout = byDefault
	for seen := false; len(query) > 0; {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte("&"))
		name, value, _ := bytes.Cut(pair, []byte("="))
		if string(name) != "timeout" {
			continue
		}
		d, ok := parseSeconds(value)
		if !ok {
			var err error
			if d, err = time.ParseDuration(string(value)); err != nil {
				return 0, false
			}
		}
		if d <= 0 || seen {
			return 0, false
		}
		timeout, seen = d, true
	}
	return timeout, true
}

// parseSeconds is time.ParseDuration for what kube-apiserver sends, such as "10s": at most
// four digits. It allocates nothing.
func parseSeconds(value []byte) (d time.Duration, ok bool) {
	digits, ok := bytes.CutSuffix(value, []byte("s"))
	if !ok || len(digits) == 0 || len(digits) > 4 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		d = 10*d + time.Duration(c-'0')*time.Second
	}
	return d, true
}
