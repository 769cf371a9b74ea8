// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/tracecontext"
)

// F5: a webhook that reads nothing any more does not keep a call beyond its
// deadline. crypto/tls waits up to 5 s for room to say goodbye when it closes; a
// pipe has no room at all.
func TestClosingKeepsTheDeadline(t *testing.T) {
	for name, answer := range map[string]string{
		"F5 F7 without an answer":             "",
		"F5 after an answer that is the last": "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const timeout = time.Second
				e, _, stop := newPipe(t, answer)
				begin := time.Now()
				end := asked(t, e, begin.Add(timeout))
				if took := time.Since(begin); took > timeout {
					t.Errorf("the call took %v of %v", took, timeout)
				}
				if timedOut := end.kind == breaker.TimedOut; timedOut != (answer == "") {
					t.Errorf("the error is %v", end.err)
				}
				stop()
			})
		})
	}
}

// A call whose time is over does not dial: no time left would mean the dialer's
// own timeout.
func TestNoTimeToDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where no time passes by itself
		e := &Endpoint{connections: connections{most: 1}, connect: func(time.Duration) (*conn, error) {
			t.Error("it dialled")
			return nil, errors.New("dialled")
		}}
		for _, left := range []time.Duration{0, -time.Second} {
			a := try{choice: choice{endpoint: e}}
			if _, err := a.connection(time.Now().Add(left), toEnd); !isTimeout(err) {
				t.Errorf("the error is %v", err)
			}
		}
	})
}

// asked makes a try at an Endpoint, and says what became of it.
func asked(t *testing.T, e *Endpoint, deadline time.Time) result {
	t.Helper()
	return askedAs(t, e, deadline, toEnd)
}

// askedAs is asked for a try that is made by and by.
func askedAs(t *testing.T, e *Endpoint, deadline time.Time, hows ...extent) (end result) {
	t.Helper()
	head := newHead("policy", "/", "")
	r := &race{Call: Call{Target: &Target{host: "policy", head: head}, Message: &judging{}, Cluster: "east", Deadline: deadline}, ctx: t.Context()}
	r.common = &common{adopt: func(*Endpoint) {}}
	r.due = deadline
	a := &try{choice: choice{endpoint: e}, ctx: r.ctx, begin: time.Now()}
	for _, how := range hows {
		end, _ = exchange(r, a, how)
	}
	a.close(&r.Call)
	return end
}

// What a request looks like on the wire.
func TestRequest(t *testing.T) {
	var out bytes.Buffer
	head := newHead("policy.shop.svc:8443", "/check", "Bearer secret")
	req := request{head: &head, timeout: 1500 * time.Millisecond, cluster: "east", payload: Payload{Fields: "Content-Type: application/json\r\n", Body: []byte(`{"a":1}`)}, trace: tracecontext.Fields{Parent: []byte("00-a-b-01"), State: []byte("c=d")}}
	if err := req.write(bufio.NewWriter(&out)); err != nil {
		t.Fatal(err)
	}
	got, err := http.ReadRequest(bufio.NewReader(&out))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(got.Body)
	if err != nil || string(body) != `{"a":1}` || got.ContentLength != 7 {
		t.Errorf("body %q of %d bytes, %v", body, got.ContentLength, err)
	}
	want := http.Header{
		"Admission-Cluster": {"east"}, "Authorization": {"Bearer secret"},
		"Content-Length": {"7"}, "Content-Type": {"application/json"}, "User-Agent": {"admission-dispatcher"},
		"Traceparent": {"00-a-b-01"}, "Tracestate": {"c=d"},
	}
	if diff := cmp.Diff(want, got.Header); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	for timeout, want := range map[time.Duration]string{2 * time.Second: "2s", 2*time.Second + 1: "3s", 1: "1s"} {
		out.Reset()
		if req.timeout = timeout; req.write(bufio.NewWriter(&out)) != nil || !strings.HasPrefix(out.String(), "POST /check?timeout="+want+" HTTP/1.1\r\n") {
			t.Errorf("with %v left: %.40q", timeout, out.String())
		}
	}
	if got.Method != http.MethodPost || got.Host != "policy.shop.svc:8443" || got.RequestURI != "/check?timeout=2s" {
		t.Errorf("%s %s to %s", got.Method, got.RequestURI, got.Host)
	}
}

// Records are counted however they are cut.
func TestRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stream []byte
		lengths := rapid.SliceOfN(rapid.IntRange(0, 300), 0, 8).Draw(t, "lengths")
		for _, n := range lengths {
			stream = append(stream, 23, 3, 3, byte(n>>8), byte(n))
			stream = append(stream, make([]byte, n)...)
		}
		var r records
		for rest := stream; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			r.pass(rest[:n])
			rest = rest[n:]
		}
		if r.whole != len(lengths) || !r.between() {
			t.Fatalf("%d records, want %d; between %v", r.whole, len(lengths), r.between())
		}
	})
}

// newPipe is a pool with one connection, without any buffer, to a server that
// reads one request, writes answer, and neither reads nor closes until end.
func newPipe(t *testing.T, answer string) (e *Endpoint, plain *records, end func()) {
	t.Helper()
	authority, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(pki.Subject{DNSNames: []string{"policy"}})
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	go func() {
		c := tls.Server(far, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}})
		if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(c, answer)
		}
	}()
	plain = &records{Conn: near}
	secured := tls.Client(plain, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "policy", RootCAs: authority.Pool()})
	e = &Endpoint{limit: 1 << 20, connections: connections{most: 1}, slots: slotPool{free: 1, holders: map[holder]*holding{}}}
	e.connect = func(time.Duration) (*conn, error) { return newConn(plain, secured), nil }
	return e, plain, func() { _ = far.Close() }
}

// closed is a connection that the other side has closed, after it has read so many
// bytes more.
type closed struct {
	net.Conn
	reads int
}

func (c *closed) Write(p []byte) (int, error) {
	if n := min(c.reads, len(p)); n < len(p) {
		c.reads -= n
		return n, &net.OpError{Op: "write", Err: syscall.EPIPE}
	}
	c.reads -= len(p)
	return len(p), nil
}

func (c *closed) Read([]byte) (int, error) {
	return 0, &net.OpError{Op: "read", Err: syscall.ECONNRESET}
}

// F14: it is known of a connection that ended as it was used again whether the
// webhook can have seen anything of the request.
func TestClosedAsReused(t *testing.T) {
	for name, row := range map[string]struct {
		reads  int
		unsent bool
	}{"nothing is read": {0, true}, "a byte is read": {1, false}, "all is read": {1 << 20, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, plain, end := newPipe(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
				defer end()
				if got := asked(t, e, time.Now().Add(time.Second)); got.err != nil {
					t.Fatal(got.err)
				}
				plain.Conn = &closed{plain.Conn, row.reads}
				if got := asked(t, e, time.Now().Add(time.Second)); !got.stale || got.unsent != row.unsent {
					t.Errorf("stale %v, unsent %v: %v", got.stale, got.unsent, got.err)
				}
			})
		})
	}
}

// broken is a connection over which all is written, and that says it is not.
type broken struct{ net.Conn }

func (c broken) Write(p []byte) (int, error) {
	n, _ := c.Conn.Write(p)
	return n, &net.OpError{Op: "write", Err: syscall.EPIPE}
}

// A webhook that answers a request that could not be written to its end is heard, and its
// connection is not used again, however it answers.
func TestNotWholeIsNotUsedAgain(t *testing.T) {
	for name, answer := range map[string]string{
		"plain": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "in chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
	} {
		for fails, kept := range map[bool]int{true: 0, false: 1} {
			for _, hows := range [][]extent{{toEnd}, {toSend, toEnd}, {toSend, toListen, toEnd}} {
				synctest.Test(t, func(t *testing.T) {
					e, plain, end := newPipe(t, answer)
					defer end()
					if err := e.warm(time.Second); err != nil {
						t.Fatal(err)
					}
					c := e.connections.idle[0]
					if err := c.Handshake(); err != nil {
						t.Fatal(err)
					}
					if fails {
						plain.Conn = broken{plain.Conn}
					}
					if got := askedAs(t, e, time.Now().Add(time.Second), hows...); got.err != nil {
						t.Error(got.err)
					}
					if n := e.connections.count(); n != kept {
						t.Errorf("%s, broken %v, %v: %d connections are kept", name, fails, hows, n)
					}
				})
			}
		}
	}
}

// An attempt that ends without an answer that can be read leaves no connection open.
func TestFailedTriesKeepNoConnection(t *testing.T) {
	for _, answer := range []string{"", "SSH-2.0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}"} {
		synctest.Test(t, func(t *testing.T) {
			e, _, end := newPipe(t, answer)
			defer end()
			if got := asked(t, e, time.Now().Add(time.Second)); got.err == nil {
				t.Errorf("%q is an answer", answer)
			}
			if n := e.connections.count(); n != 0 {
				t.Errorf("after %q %d connections are open", answer, n)
			}
		})
	}
}

// What TLS itself had to say, and could not without waiting, is not lost between two
// requests: such a connection is not kept.
func TestUnsentIsNotKept(t *testing.T) {
	near, _ := tcpPipe(t)
	r := &records{Conn: near}
	c := newConn(r, tls.Client(r, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "policy"}))
	if !c.rest(time.Now()) {
		t.Error("it is not kept although all is sent")
	}
	r.unsent = []byte{1}
	if c.rest(time.Now()) {
		t.Error("it is kept although something is not sent")
	}
}

// tcpPipe returns both ends of a connection over loopback.
func tcpPipe(t *testing.T) (near, far net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if near, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = near.Close() })
	if far, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	return near, far
}

// What the system does not take at once is kept, and written when somebody waits for it,
// whole and in order; who hurries never waits, nor does the time that is over harm.
func TestHurriedWrites(t *testing.T) {
	near, far := tcpPipe(t)
	r := &records{Conn: near}
	newConn(r, tls.Client(r, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "policy"}))
	var sent []byte
	write := func(n int) {
		for range n {
			piece := bytes.Repeat([]byte{byte(len(sent) >> 16)}, 1<<16)
			if n, err := r.Write(piece); n != len(piece) || err != nil {
				t.Fatalf("%d bytes, %v", n, err)
			}
			sent = append(sent, piece...)
		}
	}
	r.hurried = true
	if write(1); r.written != 1<<16 || len(r.unsent) > 0 {
		t.Errorf("of the first 64 KiB %d bytes are written", r.written)
	}
	write(400) // more than the system takes when nobody reads
	if len(r.unsent) == 0 || r.written+int64(len(r.unsent)) != int64(len(sent)) {
		t.Errorf("%d bytes are written and %d kept of %d", r.written, len(r.unsent), len(sent))
	}
	if err := near.SetDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	write(1)
	if err := near.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	got := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(far)
		got <- all
	}()
	if err := r.flush(); err != nil || r.written != int64(len(sent)) || r.unsent != nil || r.hurried {
		t.Errorf("%d bytes are written in the end, %v", r.written, err)
	}
	near.Close()
	if !bytes.Equal(<-got, sent) {
		t.Error("what arrives is not what was written")
	}
	r.hurried = true
	var op *net.OpError
	if _, err := r.Write([]byte{1}); !errors.As(err, &op) {
		t.Errorf("over a closed connection: %v", err)
	}
}

// A time that is over before anything was written harms nobody.
func TestTooLateToHurry(t *testing.T) {
	near, _ := tcpPipe(t)
	r := &records{Conn: near, hurried: true}
	newConn(r, tls.Client(r, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "policy"}))
	if err := near.SetDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Write([]byte{1}); n != 1 || err != nil || len(r.unsent) != 1 {
		t.Errorf("%d bytes, %d kept, %v", n, len(r.unsent), err)
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
		{"no connection", errManyOpen, result{kind: breaker.NotSent, unsent: true}},
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
