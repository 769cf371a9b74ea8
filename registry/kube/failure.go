// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cause is why a cluster's API was of no use. The set is closed, and holds no word
// of the API's own.
type Cause string

// The causes.
const (
	CauseCredential  Cause = "the credential cannot be read"
	CauseUnreachable Cause = "the API cannot be reached"
	CauseTLS         Cause = "the API does not prove who it is"
	CauseTimeout     Cause = "the API does not answer in time"
	CauseRefused     Cause = "the API refuses the credential"
	CauseForbidden   Cause = "the API does not let the dispatcher read them"
	CauseStatus      Cause = "the API answers with an error"
	CauseAnswer      Cause = "the API sends something else than it was asked for"
	CauseTooLarge    Cause = "the API sends more than is read"
)

// maxMessage bounds what is kept of an API's own words, in bytes.
const maxMessage = 256

// failure is why a request of the API came to nothing. Its text is one line, and
// bounded; err holds the API's own words at most cleaned.
type failure struct {
	cause  Cause
	status *apierrors.StatusError // what the reflector and reason know of it; nil: there is none
	stated bool                   // status has the API's own reason
	err    error
}

// Error implements error.
func (f failure) Error() string { return string(f.cause) + ": " + f.err.Error() }

// Unwrap returns the API's status, if it sent one.
func (f failure) Unwrap() error {
	if f.status != nil {
		return f.status
	}
	return f.err
}

// failureOf maps what went wrong on the way.
func failureOf(err error) error {
	if known, ok := errors.AsType[failure](err); ok {
		return known
	}
	f := failure{cause: CauseUnreachable, err: err}
	_, large := errors.AsType[tooLarge](err)
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	timeout, timed := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	switch {
	case large:
		f.cause = CauseTooLarge
	case errors.Is(err, errNoJSON):
		f.cause = CauseAnswer
	case verification, alert:
		f.cause = CauseTLS
	case errors.Is(err, context.DeadlineExceeded), timed && timeout.Timeout():
		f.cause = CauseTimeout
	}
	f.err = words{clean(err.Error()), err}
	return f
}

// words are an error with a text that can be shown.
type words struct {
	text string
	error
}

func (w words) Error() string { return w.text }
func (w words) Unwrap() error { return w.error }

// refused maps an answer that is not 200.
func refused(code int, s metav1.Status) error {
	f := failure{cause: CauseStatus, stated: s.Reason != ""}
	switch code {
	case http.StatusUnauthorized:
		f.cause = CauseRefused
	case http.StatusForbidden:
		f.cause = CauseForbidden
	}
	status := metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: s.Reason, Message: clean(s.Message)}
	if s.Reason == "" || len(clean(string(s.Reason))) != len(s.Reason) {
		status.Reason = reasonOf(code)
	}
	f.status = &apierrors.StatusError{ErrStatus: status}
	f.err = fmt.Errorf("HTTP status %d", code)
	if status.Message != "" {
		f.err = fmt.Errorf("HTTP status %d, with the message %q", code, status.Message)
	}
	return f
}

// reasonOf is the reason that an API server would have given.
func reasonOf(code int) metav1.StatusReason {
	switch code {
	case http.StatusUnauthorized:
		return metav1.StatusReasonUnauthorized
	case http.StatusForbidden:
		return metav1.StatusReasonForbidden
	case http.StatusNotFound:
		return metav1.StatusReasonNotFound
	case http.StatusGone:
		return metav1.StatusReasonExpired
	case http.StatusTooManyRequests:
		return metav1.StatusReasonTooManyRequests
	}
	return metav1.StatusReasonUnknown
}

// clean makes foreign text one short line: what is no printable character is left
// out, and so is everything beyond maxMessage bytes.
func clean(text string) string {
	var b strings.Builder
	for _, c := range text {
		if b.Len() >= maxMessage {
			b.WriteString("...")
			break
		}
		switch {
		case unicode.IsPrint(c) && c != unicode.ReplacementChar && !unicode.Is(unicode.Bidi_Control, c):
			b.WriteRune(c)
		case unicode.IsSpace(c):
			b.WriteByte(' ')
		}
	}
	return b.String()
}
