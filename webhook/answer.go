// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// meaningOf says what an HTTP answer of a Target means that must fit what is wanted.
func meaningOf(reply *transport.Reply, from *transport.Target, want codec.Expectation) transport.Judgment {
	if err := checkHTTP(reply, from); err != nil {
		return transport.Judgment{Err: err, Doubtful: isMisreading(reply)}
	}
	sent := contentOf(reply)
	resp, err := codec.Verify(sent.content, want)
	if sent.defect != "" {
		err = sent.unusable(resp, err, want.Compat)
	}
	if err != nil {
		return transport.Judgment{Err: unusable(err), Doubtful: true}
	}
	return transport.Judgment{Response: resp}
}

// isMisreading reports whether an answer that is none may be what a webhook says that
// does not read what it was sent: by any status and by any defect. Not so what says
// that it is too busy to read, and that it failed where it offers the form anew.
func isMisreading(reply *transport.Reply) bool {
	_, offers := readingOf(reply)
	return !reply.IsBusy() && (!offers || reply.Status < http.StatusInternalServerError)
}

// checkHTTP refuses every answer but a 200 to 206 with a body, as kube-apiserver
// does (C10, C11, C27). What a webhook says beside another status is not looked at:
// it is no answer. Redirects are not followed.
func checkHTTP(reply *transport.Reply, t *transport.Target) error {
	status := reply.Status
	switch {
	case isRedirect(status):
		return &hook.CallError{Cause: hook.HTTPStatus, Err: fmt.Errorf("%s answered with HTTP status %d%s", t.Host(), status, redirection(reply, t))}
	case !reply.IsSuccess():
		return &hook.CallError{Cause: hook.HTTPStatus, Err: fmt.Errorf("%s answered with HTTP status %d", t.Host(), status)}
	case len(reply.Body) == 0:
		return &hook.CallError{Cause: hook.HTTPStatus, Err: fmt.Errorf("%s answered with an empty body", t.Host())}
	}
	return nil
}

// isRedirect reports whether kube-apiserver would post the review once more, to
// where the answer says.
func isRedirect(status int) bool {
	return status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect
}

// redirection says what to do about a URL that redirects. It quotes nothing: what a
// webhook writes may quote the object.
func redirection(reply *transport.Reply, t *transport.Target) string {
	const unfollowed = ", a redirect, which kube-apiserver would follow and the dispatcher does not"
	if len(reply.Location) == 0 {
		return ""
	}
	base, _ := url.Parse(t.URL()) // of a Target, which has parsed it
	to, err := base.Parse(string(reply.Location))
	switch {
	case err != nil || to.Scheme != "https":
		return unfollowed
	case to.Host != base.Host:
		return unfollowed + ": it leads to another host, register the URL that answers"
	case transport.PathOf(to) != transport.PathOf(base):
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

// contentOf returns the content of an answer.
// kube-apiserver asks for gzip, and looks at a Content-Type only to parse it: what
// the content is, its first bytes tell.
func contentOf(reply *transport.Reply) sent {
	s := sent{content: reply.Body}
	if kind := reply.ContentType; len(kind) > 0 && !bytes.Equal(kind, plainJSON) {
		if _, _, err := mime.ParseMediaType(string(kind)); err != nil {
			s.defect = "the answer has a Content-Type that is none"
		}
	}
	if len(reply.ContentEncoding) == 0 {
		return s
	}
	coding := string(bytes.ToLower(reply.ContentEncoding))
	content, err := codec.Decompress(nil, coding, s.content, reply.Limit, nil)
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

// deniesPart is the error of an answer that could not be read to its end. It denies
// if what could be seen of it, which may be compressed, does (C12).
func deniesPart(reply *transport.Reply) error {
	denies := codec.MentionsDenial(reply.Body)
	if !denies {
		plain, _ := codec.Decompress(nil, string(bytes.ToLower(reply.ContentEncoding)), reply.Body, reply.Limit, nil) // as far as it goes
		denies = codec.MentionsDenial(plain)
	}
	if denies {
		return &codec.AnswerError{Reason: reply.Cut.Error(), Denies: true}
	}
	return reply.Cut
}
