// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// read is the ending of an attempt that got an HTTP answer.
func (e *Endpoint) read(answer *fasthttp.Response, call *Call) ending {
	status := answer.StatusCode()
	if err := checkHTTP(answer, call.Target); err != nil {
		return ending{endpoint: e, err: err, status: status, kind: kindOfStatus(status), pause: pauseOf(answer), misread: isMisreading(answer)}
	}
	sent := contentOf(answer, e.pool.MaxResponseBodySize)
	resp, err := codec.Verify(sent.content, call.Want)
	if sent.defect != "" {
		err = sent.unusable(resp, err, call.Want.Compat)
	}
	if err != nil {
		return ending{endpoint: e, err: unusable(err), status: status, kind: breaker.BadAnswer, misread: true}
	}
	return ending{endpoint: e, resp: resp, status: status, kind: kindOf(resp, nil)}
}

// checkHTTP refuses every answer but a 200 to 206 with a body, as kube-apiserver
// does (C10, C11, C27). What a webhook says beside another status is not looked at:
// it is no answer. Redirects are not followed.
func checkHTTP(resp *fasthttp.Response, t *Target) error {
	status := resp.StatusCode()
	switch {
	case isRedirect(status):
		return &hook.CallError{Cause: hook.HTTPStatus, Err: fmt.Errorf("%s answered with HTTP status %d%s", t.host, status, redirection(resp, t))}
	case !isSuccess(status):
		return &hook.CallError{Cause: hook.HTTPStatus, Err: fmt.Errorf("%s answered with HTTP status %d", t.host, status)}
	case len(resp.Body()) == 0:
		return &hook.CallError{Cause: hook.HTTPStatus, Err: fmt.Errorf("%s answered with an empty body", t.host)}
	}
	return nil
}

func isSuccess(status int) bool {
	return status >= fasthttp.StatusOK && status <= fasthttp.StatusPartialContent
}

// isRedirect reports whether kube-apiserver would post the review once more, to
// where the answer says.
func isRedirect(status int) bool {
	return status == fasthttp.StatusTemporaryRedirect || status == fasthttp.StatusPermanentRedirect
}

// redirection says what to do about a URL that redirects. It quotes nothing: what a
// webhook writes may quote the object.
func redirection(resp *fasthttp.Response, t *Target) string {
	const unfollowed = ", a redirect, which kube-apiserver would follow and the dispatcher does not"
	location := resp.Header.Peek(fasthttp.HeaderLocation)
	base, err := url.Parse(t.url)
	if len(location) == 0 || err != nil {
		return ""
	}
	to, err := base.Parse(string(location))
	switch {
	case err != nil || to.Scheme != "https":
		return unfollowed
	case to.Host != base.Host:
		return unfollowed + ": it leads to another host, register the URL that answers"
	case cleanPath(to) != cleanPath(base):
		return unfollowed + ": it leads to another path of this host, register the URL that answers"
	}
	return unfollowed + ": it leads to another spelling of this path, serve it without a slash at its end"
}

// sent is the content of an answer, and what is wrong with how it was sent.
type sent struct {
	content []byte
	defect  string
	ours    bool // the defect is one of ours alone: kube-apiserver reads such an answer
}

// contentOf returns the content of an answer, of at most limit bytes.
// kube-apiserver asks for gzip, and looks at a Content-Type only to parse it: what
// the content is, its first bytes tell.
func contentOf(answer *fasthttp.Response, limit int) sent {
	s := sent{content: answer.Body()}
	if kind := answer.Header.ContentType(); len(kind) > 0 && !bytes.Equal(kind, plainJSON) {
		if _, _, err := mime.ParseMediaType(string(kind)); err != nil {
			s.defect = "the answer has a Content-Type that is none"
		}
	}
	if len(answer.Header.ContentEncoding()) == 0 {
		return s
	}
	coding := string(bytes.ToLower(answer.Header.ContentEncoding()))
	content, err := codec.Decompress(nil, coding, s.content, limit, nil)
	unasked := coding != codec.Gzip.String()
	switch {
	case errors.Is(err, codec.ErrTooLarge):
		s.content, s.ours = content, s.defect == "" && !unasked
		s.defect = "the answer is over the limit when it is decompressed"
	case unasked && err != nil: // for kube-apiserver it is not compressed at all
	case err != nil:
		s.content, s.defect = content, "the answer cannot be decompressed"
	case unasked:
		s.content, s.defect = content, "the answer has a Content-Encoding that was not asked for"
	default:
		s.content = content
	}
	return s
}

var plainJSON = []byte(codec.MediaTypeJSON)

func isProtobuf(contentType []byte) bool {
	kind, _, _ := bytes.Cut(contentType, []byte(";"))
	return string(bytes.TrimSpace(kind)) == codec.MediaTypeProtobuf
}

// unusable makes an AnswerError of an answer that was sent with a defect, and that
// Verify has read. A denial is not lost over that, be it in part of an answer.
func (s *sent) unusable(resp codec.Response, err error, compat codec.Compatibility) error {
	var bad *codec.AnswerError
	denies := err == nil && !resp.Allowed || errors.As(err, &bad) && bad.Denies || err != nil && codec.MentionsDenial(s.content)
	return &codec.AnswerError{Reason: s.defect, Denies: denies && (compat == codec.Strict || s.ours)}
}

// unusable makes a CallError of an answer that does not fit, unless it denies.
func unusable(err error) error {
	if bad := (*codec.AnswerError)(nil); errors.As(err, &bad) && bad.Denies {
		return err
	}
	return &hook.CallError{Cause: hook.BadAnswer, Err: fmt.Errorf("received invalid webhook response: %w", err)}
}

const (
	// maxHeader is the limit of an answer's headers.
	maxHeader = 64 << 10
	// lookTime is how long the beginning of an answer that is over a limit may take
	// to arrive.
	lookTime = time.Second
)

// beyondError says that an answer could not be read, because it is over a limit or
// not HTTP as we read it, and whether what could be seen of it denies (C12).
type beyondError struct {
	err    error
	denies bool
}

func (e *beyondError) Error() string { return e.err.Error() }

func (e *beyondError) Unwrap() error { return e.err }

// readAnswer reads an answer of at most limit bytes by the deadline. rest is how
// many bytes behind it have been read. In one that is over a limit it looks for a
// denial, so that none is lost because a webhook quotes a large object.
func readAnswer(r *bufio.Reader, c net.Conn, resp *fasthttp.Response, limit int, deadline time.Time) (rest int, err error) {
	err = resp.ReadLimitBody(r, limit)
	large := r
	if err != nil && isHeaderTooLarge(err) && startsAnswer(r) {
		large = bufio.NewReaderSize(r, maxHeader)
		err = resp.ReadLimitBody(large, limit)
	}
	if err == nil {
		if rest = r.Buffered(); large != r {
			rest += large.Buffered()
		}
		return rest, nil
	}
	if soon := time.Now().Add(lookTime); soon.Before(deadline) {
		_ = c.SetReadDeadline(soon)
	}
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		if isSuccess(resp.StatusCode()) {
			return 0, &beyondError{err: err, denies: deniesBeyond(resp, large, limit)}
		}
	case startsAnswer(large):
		return 0, &beyondError{err: err, denies: deniesUnread(large, limit)}
	}
	return 0, err
}

// startsAnswer reports whether the header of an answer is what is to be read next.
func startsAnswer(r *bufio.Reader) bool {
	const version = "HTTP/1."
	if r.Buffered() < len(version) {
		return false
	}
	start, err := r.Peek(len(version))
	return err == nil && string(start) == version
}

// deniesBeyond looks for a denial at the beginning of a body that is over the
// limit, of which r has the rest.
func deniesBeyond(resp *fasthttp.Response, r io.Reader, limit int) bool {
	body := resp.Body()
	more, _ := io.ReadAll(io.LimitReader(r, int64(limit-min(len(body), limit)))) // as far as it comes
	return deniesPart(append(body[:len(body):len(body)], more...), string(resp.Header.ContentEncoding()), limit)
}

// deniesUnread looks for a denial in an answer whose header our own HTTP client
// does not read, as kube-apiserver's client would.
func deniesUnread(r io.Reader, limit int) bool {
	resp, err := http.ReadResponse(bufio.NewReader(io.LimitReader(r, int64(maxHeader+limit))), nil)
	if err != nil || !isSuccess(resp.StatusCode) {
		return false
	}
	body, _ := io.ReadAll(resp.Body) // as far as it comes
	return deniesPart(body, resp.Header.Get(fasthttp.HeaderContentEncoding), limit)
}

// deniesPart looks for a denial in part of a content, which may be compressed.
func deniesPart(part []byte, coding string, limit int) bool {
	if codec.MentionsDenial(part) {
		return true
	}
	plain, _ := codec.Decompress(nil, string(bytes.ToLower([]byte(coding))), part, limit, nil) // as far as it goes
	return codec.MentionsDenial(plain)
}
