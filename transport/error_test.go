// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bufio"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// What an error of the network is called, and whose fault it is.
func TestFailures(t *testing.T) {
	reset := &net.OpError{Op: "read", Err: errors.New("reset")}
	inTime := func(change func(*dialError)) error {
		e := &dialError{stage: "connect", err: os.ErrDeadlineExceeded}
		change(e)
		return e
	}
	for _, row := range []struct {
		err   error
		cause hook.Cause
		kind  breaker.Kind
		text  string
	}{
		{&dialError{stage: "TLS handshake", tls: true, err: x509.UnknownAuthorityError{}}, hook.TLS, breaker.TLSFailed, "policy: TLS handshake: x509: certificate signed by unknown authority"},
		{inTime(func(e *dialError) { e.queued, e.late = true, time.Hour }), hook.Timeout, breaker.NotSent, "policy could not be reached in time: connect: i/o timeout"},
		{inTime(func(e *dialError) { e.late = stoodStill }), hook.Timeout, breaker.ConnectTimedOut, "policy could not be reached in time: connect: i/o timeout"},
		{inTime(func(e *dialError) { e.late = stoodStill + 1 }), hook.Timeout, breaker.Paused, "policy could not be reached in time: connect: i/o timeout"},
		{inTime(func(e *dialError) { e.short = true }), hook.Timeout, breaker.TimedOut, "policy could not be reached in time: connect: i/o timeout"},
		{os.ErrDeadlineExceeded, hook.Timeout, breaker.TimedOut, "policy did not answer within 1.235s"},
		{&dialError{stage: "connect", err: syscall.EMFILE}, hook.Unreachable, breaker.NotSent, "policy: connect: too many open files"},
		{&dialError{stage: "connect", err: syscall.ECONNREFUSED}, hook.Unreachable, breaker.Refused, "policy: connect: connection refused"},
		{fasthttp.ErrBodyTooLarge, hook.BadAnswer, breaker.BadAnswer, "policy answered with a body over the limit"},
		{&fasthttp.ErrSmallBuffer{}, hook.BadAnswer, breaker.BadAnswer, "policy answered with more than 64 KiB of headers"},
		{errNoSlot, hook.Shed, breaker.NotSent, "policy: too many calls are under way"},
		{errManyOpen, hook.Shed, breaker.NotSent, "policy: too many calls are under way"},
		{io.ErrUnexpectedEOF, hook.BadAnswer, breaker.BadAnswer, "policy ended the connection in the middle of its answer"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, hook.TLS, breaker.TLSFailed, "policy: remote error: tls: bad certificate"},
		{&net.OpError{Op: "local error", Err: errors.New("tls: bad record MAC")}, hook.TLS, breaker.TLSFailed, "policy: local error: tls: bad record MAC"},
		{reset, hook.Unreachable, breaker.Reset, "policy broke the connection: read: reset"},
		{net.ErrClosed, hook.Unreachable, breaker.Reset, "policy broke the connection: use of closed network connection"},
		{fasthttp.ErrConnectionClosed, hook.Unreachable, breaker.Reset, "policy broke the connection: " + fasthttp.ErrConnectionClosed.Error()},
		{bufio.ErrNegativeCount, hook.Unreachable, breaker.Reset, "policy broke the connection: bufio: negative count"},
		{errors.New("what?"), hook.BadAnswer, breaker.BadAnswer, "policy answered with something else than HTTP"},
	} {
		f, err := failureOf(row.err, "policy", 1234567*time.Microsecond)
		if f.kind != row.kind || err.Cause != row.cause || err.Error() != row.text {
			t.Errorf("%v is %v, %v: %q; want %v, %v: %q", row.err, err.Cause, f.kind, err.Error(), row.cause, row.kind, row.text)
		}
	}
}
