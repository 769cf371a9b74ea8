// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/hook"
)

// callError maps the errors of net, crypto/tls and fasthttp, here and nowhere
// else, to the closed set of causes.
func callError(err error, host string, allowed time.Duration) *hook.CallError {
	var dial *dialError
	switch {
	case errors.As(err, &dial) && dial.tls && isCertificateTrouble(err):
		return &hook.CallError{Cause: hook.TLS, Err: fmt.Errorf("%s: %w", host, err)}
	case errors.As(err, &dial) && isTimeout(err):
		return &hook.CallError{Cause: hook.Timeout, Err: fmt.Errorf("%s could not be reached in time: %w", host, err)}
	case isTimeout(err):
		return &hook.CallError{Cause: hook.Timeout, Err: fmt.Errorf("%s did not answer within %v", host, allowed.Round(time.Millisecond))}
	case errors.As(err, &dial) && dial.tls:
		return &hook.CallError{Cause: hook.TLS, Err: fmt.Errorf("%s: %w", host, err)}
	case errors.As(err, &dial):
		return &hook.CallError{Cause: hook.Unreachable, Err: fmt.Errorf("%s: %w", host, err)}
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return &hook.CallError{Cause: hook.BadAnswer, Err: fmt.Errorf("%s answered with a body over the limit", host)}
	case isHeaderTooLarge(err):
		return &hook.CallError{Cause: hook.BadAnswer, Err: fmt.Errorf("%s answered with more than 64 KiB of headers", host)}
	case errors.Is(err, errNoSlot), errors.Is(err, fasthttp.ErrNoFreeConns):
		return &hook.CallError{Cause: hook.Shed, Err: fmt.Errorf("%s: too many calls are under way", host)}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &hook.CallError{Cause: hook.BadAnswer, Err: fmt.Errorf("%s ended the connection in the middle of its answer", host)}
	case isAlert(err):
		return &hook.CallError{Cause: hook.TLS, Err: fmt.Errorf("%s: %w", host, err)}
	case isBroken(err):
		return &hook.CallError{Cause: hook.Unreachable, Err: fmt.Errorf("%s broke the connection: %w", host, err)}
	}
	return &hook.CallError{Cause: hook.BadAnswer, Err: fmt.Errorf("%s answered with something else than HTTP", host)}
}

// isHeaderTooLarge reports whether the headers, or trailers, of an answer did not
// fit.
func isHeaderTooLarge(err error) bool {
	var small *fasthttp.ErrSmallBuffer
	return errors.As(err, &small)
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

func isCertificateTrouble(err error) bool {
	var verification *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	return errors.As(err, &verification) || errors.As(err, &unknown)
}

// isAlert reports whether either side ended the TLS session with an alert, as a
// webhook does that wants another client certificate: with TLS 1.3 its client
// learns that when it reads. crypto/tls has no type for it.
func isAlert(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && (network.Op == "remote error" || network.Op == "local error")
}

// isBroken reports whether the connection, not the answer, is at fault.
func isBroken(err error) bool {
	var network *net.OpError
	return errors.Is(err, fasthttp.ErrConnectionClosed) || errors.As(err, &network) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, bufio.ErrNegativeCount)
}
