// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bytes"
	"net/http"
)

// look is what the beginning of an answer shows.
type look uint8

const (
	other   look = iota // it is not plain
	partial             // there is more to come
	whole
)

// plainReply reads an answer that is as almost all are: a 200 with its length, and
// nothing that concerns the connection. Whatever is not certain is other, and left to
// who reads all of HTTP. What reply points to is buf's. length is that of the whole
// answer, of a partial one as far as is known: it is more than there is.
func plainReply(buf []byte, limit int) (reply Reply, length int, is look) {
	const line = "HTTP/1.1 200 OK\r\n"
	if n := min(len(buf), len(line)); string(buf[:n]) != line[:n] {
		return Reply{}, 0, other
	}
	reply = Reply{Status: http.StatusOK, Limit: limit}
	size, at := -1, len(line)
	for {
		end := bytes.IndexByte(buf[min(at, len(buf)):], '\n')
		if end < 0 {
			return Reply{}, len(buf) + 1, partial
		}
		field := buf[at : at+end]
		at += end + 1
		if string(field) == "\r" {
			break
		}
		if !reply.take(field, &size) {
			return Reply{}, 0, other
		}
	}
	switch length = at + size; {
	case size < 0 || size > limit:
		return Reply{}, 0, other
	case length > len(buf):
		return Reply{}, length, partial
	}
	reply.Body = buf[at:length:length]
	return reply, length, whole
}

// take takes a header field, a line without its line feed. It reports false if an answer
// with it is not plain.
func (r *Reply) take(field []byte, size *int) bool {
	name, value, ok := bytes.Cut(field, []byte(":"))
	end := len(value) - 1
	if !ok || end < 0 || value[end] != '\r' || !isToken(name) {
		return false
	}
	value = bytes.Trim(value[:end], " \t")
	for _, b := range value {
		if b < ' ' && b != '\t' || b > '~' {
			return false
		}
	}
	var to *[]byte
	switch {
	case isNamed(name, "content-length"):
		n, ok := digits(value)
		ok = ok && *size < 0
		*size = n
		return ok
	case isNamed(name, "content-type"):
		to = &r.ContentType
	case isNamed(name, "content-encoding"):
		to = &r.ContentEncoding
	case isNamed(name, "accept-post"):
		to = &r.AcceptPost
	case isNamed(name, "accept-encoding"):
		to = &r.AcceptEncoding
	default:
		return !concernsOthers(name)
	}
	if *to != nil || len(value) == 0 { // an empty one could not be told from none
		return false
	}
	*to = value
	return true
}

// concernsOthers reports whether a header field is about the connection or the message,
// or is one that a Reply has and that plain ones have not.
func concernsOthers(name []byte) bool {
	for _, one := range [...]string{"connection", "transfer-encoding", "trailer", "upgrade", "location", "retry-after", "keep-alive", "proxy-connection", "te"} {
		if isNamed(name, one) {
			return true
		}
	}
	return false
}

// isNamed compares a token with one in lower case.
func isNamed(name []byte, lower string) bool {
	if len(name) != len(lower) {
		return false
	}
	for i, b := range name {
		if b >= 'A' && b <= 'Z' {
			b |= 0x20
		}
		if b != lower[i] {
			return false
		}
	}
	return true
}

// isToken reports whether a name has letters, digits and hyphens alone.
func isToken(name []byte) bool {
	for _, b := range name {
		if lower := b | 0x20; (lower < 'a' || lower > 'z') && (b < '0' || b > '9') && b != '-' {
			return false
		}
	}
	return len(name) > 0
}

// digits returns a number of at most nine of them.
func digits(value []byte) (n int, ok bool) {
	for _, b := range value {
		if b < '0' || b > '9' {
			return 0, false
		}
		n = 10*n + int(b-'0')
		if n > 1e9 {
			return 0, false
		}
	}
	return n, len(value) > 0
}
