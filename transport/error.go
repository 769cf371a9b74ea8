// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// failure is what an error of an exchange means: to the call, and to the breaker.
type failure struct {
	is    func(err error, dial *dialError) bool // dial is nil once there is a connection
	cause hook.Cause
	kind  breaker.Kind
	says  string // of the host
	tells detail
}

// detail is what the text of a failure ends with.
type detail uint8

const (
	noDetail detail = iota
	theError
	timeAllowed
)

// stoodStill is how late a deadline may be noticed before it is this process that
// was not there, and nobody else's fault.
const stoodStill = 250 * time.Millisecond

// failures map the errors of net, crypto/tls and fasthttp, here and nowhere else, to
// the closed sets of causes and kinds. The first that fits counts.
var failures = [...]failure{
	{isQueuedTooLong, hook.Timeout, breaker.NotSent, " could not be reached in time: ", theError}, // it is our own handshakes that take long
	{isNoticedLate, hook.Timeout, breaker.Paused, " could not be reached in time: ", theError},
	{isSlowToConnect, hook.Timeout, breaker.ConnectTimedOut, " could not be reached in time: ", theError},
	{isDialTimeout, hook.Timeout, breaker.TimedOut, " could not be reached in time: ", theError},
	{isAnyTimeout, hook.Timeout, breaker.TimedOut, " did not answer within ", timeAllowed},
	{isHandshake, hook.TLS, breaker.TLSFailed, ": ", theError},
	{isOutOfDescriptors, hook.Unreachable, breaker.NotSent, ": ", theError}, // it is this process that is
	{isDial, hook.Unreachable, breaker.Refused, ": ", theError},
	{isBodyTooLarge, hook.BadAnswer, breaker.BadAnswer, " answered with a body over the limit", noDetail},
	{isHeadTooLarge, hook.BadAnswer, breaker.BadAnswer, " answered with more than 64 KiB of headers", noDetail},
	{isShed, hook.Shed, breaker.NotSent, ": too many calls are under way", noDetail},
	{isTruncated, hook.BadAnswer, breaker.BadAnswer, " ended the connection in the middle of its answer", noDetail},
	{isAlert, hook.TLS, breaker.TLSFailed, ": ", theError},
	{isBroken, hook.Unreachable, breaker.Reset, " broke the connection: ", theError},
	{isAny, hook.BadAnswer, breaker.BadAnswer, " answered with something else than HTTP", noDetail},
}

// failureOf returns the failure that an error is, and the error of the call, which
// had so much time.
func failureOf(err error, host string, allowed time.Duration) (*failure, *hook.CallError) {
	dial, _ := errors.AsType[*dialError](err)
	f := &failures[len(failures)-1]
	for i := range failures {
		if f = &failures[i]; f.is(err, dial) {
			break
		}
	}
	said := errors.New(host + f.says)
	switch f.tells {
	case theError:
		said = fmt.Errorf("%s%s%w", host, f.says, err)
	case timeAllowed:
		said = fmt.Errorf("%s%s%v", host, f.says, allowed.Round(time.Millisecond))
	case noDetail:
	}
	return f, &hook.CallError{Cause: f.cause, Err: said}
}

func isAny(error, *dialError) bool { return true }

func isDial(_ error, dial *dialError) bool { return dial != nil }

func isHandshake(_ error, dial *dialError) bool { return dial != nil && dial.tls }

func isTimeout(err error) bool {
	if err == nil { // for whom nothing is allocated
		return false
	}
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

func isAnyTimeout(err error, _ *dialError) bool { return isTimeout(err) }

func isDialTimeout(err error, dial *dialError) bool { return dial != nil && isTimeout(err) }

func isQueuedTooLong(err error, dial *dialError) bool { return isDialTimeout(err, dial) && dial.queued }

func isNoticedLate(err error, dial *dialError) bool {
	return isDialTimeout(err, dial) && dial.late > stoodStill
}

func isSlowToConnect(err error, dial *dialError) bool { return isDialTimeout(err, dial) && !dial.short }

func isOutOfDescriptors(err error, dial *dialError) bool {
	return dial != nil && (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE))
}

func isBodyTooLarge(err error, _ *dialError) bool { return errors.Is(err, fasthttp.ErrBodyTooLarge) }

// isHeaderTooLarge reports whether the headers, or trailers, of an answer did not
// fit.
func isHeaderTooLarge(err error) bool {
	if err == nil { // for whom nothing is allocated
		return false
	}
	var small *fasthttp.ErrSmallBuffer
	return errors.As(err, &small)
}

func isHeadTooLarge(err error, _ *dialError) bool { return isHeaderTooLarge(err) }

func isShed(err error, _ *dialError) bool {
	return errors.Is(err, errNoSlot) || errors.Is(err, errManyOpen)
}

func isTruncated(err error, _ *dialError) bool { return errors.Is(err, io.ErrUnexpectedEOF) }

// isAlert reports whether either side ended the TLS session with an alert, as a
// server does that wants another client certificate: with TLS 1.3 its client
// learns that when it reads. crypto/tls has no type for it.
func isAlert(err error, _ *dialError) bool {
	var network *net.OpError
	return errors.As(err, &network) && (network.Op == "remote error" || network.Op == "local error")
}

// isBroken reports whether the connection, not the answer, is at fault.
func isBroken(err error, _ *dialError) bool {
	var network *net.OpError
	return errors.Is(err, fasthttp.ErrConnectionClosed) || errors.As(err, &network) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, bufio.ErrNegativeCount)
}

var (
	errNoTimeLeft = errors.New("no time left for the call")
	errManyOpen   = errors.New("too many connections are open")
	errNotNeeded  = errors.New("the admission was answered before the review was sent")
)

// silentError says that a connection ended before any byte of an answer.
type silentError struct {
	err       error
	reused    bool // it had been open for a while
	unwritten bool // not a byte of the request has left
}

func (e *silentError) Error() string { return e.err.Error() }

func (e *silentError) Unwrap() error { return e.err }

// cutError says that an answer could not be read, because it is over a limit or not
// HTTP as we read it, and what could be seen of it.
type cutError struct {
	err   error
	reply Reply
}

func (e *cutError) Error() string { return e.err.Error() }

func (e *cutError) Unwrap() error { return e.err }
