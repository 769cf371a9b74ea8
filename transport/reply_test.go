// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
)

// What a status says, at the edges.
func TestStatuses(t *testing.T) {
	for status, want := range map[int]struct {
		success bool
		kind    breaker.Kind
	}{
		199: {false, breaker.BadAnswer},
		200: {true, breaker.BadAnswer},
		206: {true, breaker.BadAnswer},
		207: {false, breaker.BadAnswer},
		399: {false, breaker.BadAnswer},
		400: {false, breaker.ClientError},
		429: {false, breaker.TooManyRequests},
		499: {false, breaker.ClientError},
		500: {false, breaker.ServerError},
		599: {false, breaker.ServerError},
	} {
		r := Reply{Status: status}
		if r.IsSuccess() != want.success || r.kind() != want.kind {
			t.Errorf("%d: success %v, kind %v", status, r.IsSuccess(), r.kind())
		}
	}
}

// A pause is as many seconds as it says, a minute at most, however many it says.
func TestPausesInSeconds(t *testing.T) {
	r := Reply{Status: http.StatusTooManyRequests}
	for _, seconds := range []int{0, 1, 59, 60, 61, math.MaxInt32, 18446744074, math.MaxInt / 2, math.MaxInt} {
		r.RetryAfter = strconv.AppendInt(nil, int64(seconds), 10)
		if got, want := r.pause(), time.Duration(min(seconds, 60))*time.Second; got != want {
			t.Errorf("%d seconds: a pause of %v, want %v", seconds, got, want)
		}
	}
}

// judging is a Message that judges as it is told.
type judging struct {
	negotiated
	as Judgment
}

func (m *judging) Judge(Reply) Judgment { return m.as }

// What an attempt that got no HTTP answer says of the review: whether any of it has
// left, over which kind of connection, and whether its wording is perhaps at fault.
func TestFailedAttempts(t *testing.T) {
	reset := &net.OpError{Op: "read", Err: errors.New("reset")}
	silent := func(reused, unwritten bool, err error) error {
		return &silentError{err: err, reused: reused, unwritten: unwritten}
	}
	for _, row := range []struct {
		name string
		err  error
		want result
	}{
		{"refused", &dialError{stage: "connect", err: reset}, result{kind: breaker.Refused, unsent: true}},
		{"no handshake", &dialError{stage: "TLS handshake", tls: true, err: reset}, result{kind: breaker.TLSFailed, unsent: true}},
		{"no certificate that is trusted", &dialError{tls: true, err: &tls.CertificateVerificationError{Err: reset}}, result{kind: breaker.TLSFailed, unsent: true}},
		{"no slot", errNoSlot, result{kind: breaker.NotSent, unsent: true}},
		{"no connection", fasthttp.ErrNoFreeConns, result{kind: breaker.NotSent, unsent: true}},
		{"no answer in time", os.ErrDeadlineExceeded, result{kind: breaker.TimedOut}},
		{"nor over a connection that was used before", silent(true, false, os.ErrDeadlineExceeded), result{kind: breaker.TimedOut}},
		{"reset", reset, result{kind: breaker.Reset, doubtful: true}},
		{"before a byte of the answer", silent(false, false, reset), result{kind: breaker.Reset, doubtful: true}},
		{"before a byte of the request", silent(false, true, reset), result{kind: breaker.Reset, doubtful: true}},
		{"reset as it was used again", silent(true, false, reset), result{kind: breaker.Reset, stale: true}},
		{"and before a byte of the request", silent(true, true, reset), result{kind: breaker.Reset, stale: true, unsent: true}},
		{"half an answer", io.ErrUnexpectedEOF, result{kind: breaker.BadAnswer, doubtful: true}},
	} {
		got := failed(row.err, &Call{Target: &Target{host: "policy"}}, time.Second)
		var call *hook.CallError
		if !errors.As(got.err, &call) || !errors.Is(row.err, errNoSlot) && got.kind != row.want.kind {
			t.Errorf("%s: %v, kind %v", row.name, got.err, got.kind)
		}
		if got.unsent != row.want.unsent || got.stale != row.want.stale || got.doubtful != row.want.doubtful {
			t.Errorf("%s: unsent %v, stale %v, doubtful %v", row.name, got.unsent, got.stale, got.doubtful)
		}
	}
}

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
		{fasthttp.ErrNoFreeConns, hook.Shed, breaker.NotSent, "policy: too many calls are under way"},
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

// An answer of which the rest did not come is one if what there is of it denies.
func TestBeginningsAreJudged(t *testing.T) {
	cut := &cutError{err: os.ErrDeadlineExceeded}
	for err, want := range map[error]breaker.Kind{
		&codec.AnswerError{Denies: true}:                     breaker.BadAnswer,
		&hook.CallError{Cause: hook.Timeout, Err: errNoSlot}: breaker.TimedOut,
	} {
		m := &judging{as: Judgment{Err: err}}
		if got := failed(cut, &Call{Target: &Target{host: "policy"}, Message: m}, time.Second); got.kind != want || !errors.Is(got.err, err) {
			t.Errorf("%v: kind %v, want %v", got.err, got.kind, want)
		}
	}
}

// An error is no allow, whatever is beside it.
func TestErrorsAllowNothing(t *testing.T) {
	end := result{resp: codec.Response{Allowed: true}, err: errors.New("defective")}
	if end.allows() {
		t.Error("it allows")
	}
}

// Two Targets that differ in anything have two identities, wherever a field ends.
func TestIdentitiesAreUnambiguous(t *testing.T) {
	zeros := string(make([]byte, 8))
	specs := []TargetSpec{
		{},
		{URL: "a"},
		{ServerName: "a"},
		{BearerToken: "a"},
		{CABundle: []byte("x"), ClientCertificate: []byte("y" + zeros)},
		{CABundle: []byte("x" + zeros + "y")},
		{Endpoints: []EndpointSpec{{Address: "a"}}},
		{Endpoints: []EndpointSpec{{ServerName: "a"}}},
		{Endpoints: []EndpointSpec{{CABundle: []byte("a")}}},
		{Breaker: BreakerSpec{Off: true}},
	}
	known := map[Identity]int{}
	for i, s := range specs {
		if other, ok := known[s.Identity()]; ok {
			t.Errorf("%+v is %+v", s, specs[other])
		}
		known[s.Identity()] = i
	}
}

// A URL is https, a host and a path, and nothing else.
func TestTargetURLs(t *testing.T) {
	for _, url := range []string{"http://a/", "https:///b", "https://a/?b", "https://a/#b", "https://u@a/", "a/b", "https://a:b/", "%"} {
		if _, err := NewTarget(TargetSpec{URL: url}); err == nil {
			t.Errorf("%q is taken", url)
		}
	}
	if _, err := NewTarget(TargetSpec{URL: "https:///b", Endpoints: []EndpointSpec{{Address: "a:443"}}}); err == nil {
		t.Error("a URL without a host is taken")
	}
	for _, url := range []string{"https://a", "https://a:8443/b", "https://[::1]/b"} {
		if _, err := NewTarget(TargetSpec{URL: url}); err != nil {
			t.Error(err)
		}
	}
	for _, token := range []string{"a\r\nb", "a\x00"} {
		if _, err := NewTarget(TargetSpec{URL: "https://a/", BearerToken: token}); err == nil {
			t.Errorf("the token %q is taken", token)
		}
	}
}

// Of two random Endpoints the less busy one comes first, those to avoid come last.
func TestBalance(t *testing.T) {
	list := []*Endpoint{new(Endpoint), new(Endpoint), new(Endpoint)}
	for i, e := range list {
		e.outstanding.Store(int64(len(list) - i)) // the last one is the least busy
	}
	counts := map[int]int{}
	const runs = 3000
	for range runs {
		order := []*Endpoint{list[0], list[1], list[2]}
		balance(order, nil)
		for i, e := range list {
			if order[0] == e {
				counts[i]++
			}
		}
		balance(order, list[1:])
		if order[0] != list[0] {
			t.Fatal("an Endpoint to avoid comes first")
		}
	}
	// The last one is among the two in two of three cases, eight standard deviations
	// are 200; the first one never wins.
	if n := counts[2]; n < 1800 || n > 2200 || counts[0] > 0 {
		t.Errorf("the Endpoints came first so often: %v", fmt.Sprint(counts))
	}
}

// A Target without Endpoints chooses none, with a breaker or without.
func TestChooseFromNone(t *testing.T) {
	for _, off := range []bool{false, true} {
		target, err := NewTarget(TargetSpec{URL: "https://a/", Breaker: BreakerSpec{Off: off}})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, ok := target.choose("east", "pods", nil); ok || target.isReachable() {
			t.Error("there is one")
		}
	}
}

// An Endpoint can be reached unless its own circuit is open: on its way back, too.
func TestIsReachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 1)
		is := func(state breaker.State, want bool) {
			t.Helper()
			if got := x.target.Endpoints()[0].Health().State; got != state || x.target.isReachable() != want {
				t.Errorf("it is %v, reachable %v; want %v, %v", got, x.target.isReachable(), state, want)
			}
		}
		is(breaker.Closed, true)
		for range 3 {
			x.call(Repeat{}, refused)
		}
		is(breaker.Open, false)
		<-time.After(2 * time.Minute)
		for range 50 {
			if x.call(Repeat{}, says(0, true)); x.target.Endpoints()[0].Health().State == breaker.Ramping {
				break
			}
		}
		is(breaker.Ramping, true)
	})
}
