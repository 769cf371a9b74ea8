// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"

	"github.com/admission-dispatcher/dispatcher/dispatcher"
)

// refusal is why a request is turned away before it is an admission. The text
// is fixed and the connection is closed: what came after the refused request is
// never read (docs/contract.md, A).
type refusal uint8

const (
	accepted refusal = iota
	malformed
	badTimeout
	cutShort
	badEncoding
	notReview
	forbidden
	otherSource
	otherGroup
	noRoute
	notPost
	tooSlow
	noLength
	tooLarge
	longURI
	wrongType
	wrongEncoding
	unknownExpect
	longHeaders
	panicked
	notReady
	crowded
	noMemory
	refusals // how many there are
)

// String returns the refusal in the spelling of metrics.
func (r refusal) String() string { return words[r] }

// words spell the refusals.
var words = [refusals]string{
	malformed:     "malformed",
	badTimeout:    "bad_timeout",
	cutShort:      "cut_short",
	badEncoding:   "bad_encoding",
	notReview:     "not_review",
	forbidden:     "forbidden",
	otherSource:   "other_source",
	otherGroup:    "other_group",
	noRoute:       "no_route",
	notPost:       "not_post",
	tooSlow:       "too_slow",
	noLength:      "no_length",
	tooLarge:      "too_large",
	longURI:       "long_uri",
	wrongType:     "wrong_type",
	wrongEncoding: "wrong_encoding",
	unknownExpect: "unknown_expect",
	longHeaders:   "long_headers",
	panicked:      "panicked",
	notReady:      "not_ready",
	crowded:       "crowded",
	noMemory:      "no_memory",
}

// What a connection is turned away for, before there is a request.
const (
	badHandshake       = "handshake"
	tooManyConnections = "too_many_connections"
)

// Reasons returns the closed set of what an Observer is told.
func Reasons() []string { return append(words[accepted+1:], badHandshake, tooManyConnections) }

// describe returns what the caller gets.
func (r refusal) describe() (status int, text string) {
	switch r {
	case badTimeout:
		return http.StatusBadRequest, "the timeout parameter must be one positive duration"
	case cutShort:
		return http.StatusBadRequest, "the body is shorter than its Content-Length"
	case badEncoding:
		return http.StatusBadRequest, "the body is not in its Content-Encoding"
	case notReview:
		return http.StatusBadRequest, "the body is not a readable AdmissionReview"
	case forbidden, otherSource: // the caller is not told that its credentials are good
		return http.StatusForbidden, "the credentials are not those of this cluster"
	case otherGroup:
		return http.StatusForbidden, "the review is about an API group that this caller does not serve"
	case noRoute:
		return http.StatusNotFound, "no such path"
	case notPost:
		return http.StatusMethodNotAllowed, "the method must be POST"
	case tooSlow:
		return http.StatusRequestTimeout, "the request did not arrive in time"
	case noLength:
		return http.StatusLengthRequired, "Transfer-Encoding is not accepted, send a Content-Length"
	case tooLarge:
		return http.StatusRequestEntityTooLarge, "the body is too large"
	case longURI:
		return http.StatusRequestURITooLong, "the URI is too long"
	case wrongType:
		return http.StatusUnsupportedMediaType, "the Content-Type must be application/json in UTF-8, or application/vnd.kubernetes.protobuf"
	case wrongEncoding:
		return http.StatusUnsupportedMediaType, "the Content-Encoding must be none, or gzip or zstd where that is switched on"
	case unknownExpect:
		return http.StatusExpectationFailed, "the only Expect is 100-continue"
	case longHeaders:
		return http.StatusRequestHeaderFieldsTooLarge, "the headers are too large"
	case panicked:
		return http.StatusInternalServerError, "internal error"
	case notReady:
		return http.StatusServiceUnavailable, "there is no configuration yet"
	case crowded:
		return http.StatusServiceUnavailable, "this cluster has too many connections"
	case noMemory:
		return http.StatusServiceUnavailable, "too many requests of this cluster are being read and held"
	default:
		return http.StatusBadRequest, "malformed request"
	}
}

// recorded returns what the log says.
func (r refusal) recorded() string {
	if r == otherSource {
		return "the address is in none of the sourceRanges of the cluster, whose credentials these are"
	}
	_, text := r.describe()
	return text
}

// defect is what the user gets where there is a uid to answer to. A lack of memory is
// the cluster's own doing, and passes.
func (r refusal) defect() dispatcher.Defect {
	status, text := r.describe()
	if r == noMemory {
		status = http.StatusTooManyRequests
	}
	return dispatcher.Defect{Code: int32(status), Message: "the admission review was not read by the dispatcher: " + text}
}

// maxQuoted bounds what an answer or a record tells about a request, in bytes.
const maxQuoted = 256

// printable returns text cut to maxQuoted, with anything that is not printable
// ASCII replaced.
func printable(text string) string {
	out := []byte(text[:min(len(text), maxQuoted)])
	for i, c := range out {
		if c < ' ' || c > '~' {
			out[i] = '?'
		}
	}
	return string(out)
}
