// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/trust"
)

// conn is one caller's TLS connection. It belongs to the goroutine that serves
// it; only Close may come from elsewhere.
type conn struct {
	*tls.Conn
	raw      net.Conn
	socket   socket // raw, as TLS reads it
	listener *listener

	// peer is the address at the other end, as sourceRanges have it; the zero Addr is in none.
	peer netip.Addr
	// chains are the verified chains of the client certificate, if there is one.
	chains trust.Chains
	// shown is the cluster whose certificate it was in the handshake, if any.
	shown string
	// arrived is when the first byte of the current request came; zero before
	// the first request.
	arrived time.Time
	// opened is when the connection was accepted, and chance a number in [0, 1) that
	// was drawn then.
	opened time.Time
	chance float64
	// expires is when the connection is old enough to be closed with an answer;
	// zero: never.
	expires time.Time
	// used is set once a byte of a request has come.
	used atomic.Bool
	// lingers is set when the caller must get to read why it is turned away.
	lingers atomic.Bool

	// owner is the cluster that the connection counts for, "" for a stranger's.
	// It is of slots, which alone changes it, on the goroutine of the connection.
	owner string
	// busy is set while there is a request, since is the time of its last change,
	// in nanoseconds.
	busy  atomic.Bool
	since atomic.Int64
	// handed is set while fasthttp hands over what it has read beyond the head
	// (head.go): it reads no more. muted is set for its next write.
	handed, muted bool
	// announced is the Content-Length of the current request.
	announced int
	// pending is what was read beyond the body of the request before.
	pending []byte

	// delivery is open while Hooks depend on whether the caller gets the answer.
	delivery dispatcher.Delivery
	// due is when the caller gives up on the verdict that is written next.
	due  time.Time
	sent bool // the last write went out
}

func newConn(raw net.Conn, l *listener) *conn {
	now := time.Now()
	c := &conn{raw: raw, socket: socket{Conn: raw}, listener: l, peer: addressOf(raw.RemoteAddr()), opened: now, chance: rand.Float64()}
	c.Conn = tls.Server(&c.socket, hardened(l.cfg.TLS, c.verify))
	c.since.Store(now.UnixNano())
	if age := l.cfg.ConnectionAge; age > 0 {
		c.expires = now.Add(lifetime(age, c.chance))
	}
	return c
}

// addressOf returns the IP address, an IPv4 address as such whatever the socket is, and
// without a zone; the zero Addr of what is no TCP address.
func addressOf(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}

// connOf returns the connection that ctx came over.
func connOf(ctx *fasthttp.RequestCtx) *conn { return ctx.Conn().(*conn) }

// connState is fasthttp's hook. A connection becomes active when a byte of a
// request has come, not before, because ReduceMemoryUsage makes fasthttp wait
// for that byte without a buffer. That is where the deadline of an admission
// starts: kube-apiserver sends the headers in one write.
func connState(c net.Conn, state fasthttp.ConnState) {
	switch state {
	case fasthttp.StateActive:
		c := c.(*conn)
		c.arrived = time.Now()
		c.used.Store(true)
		c.turns(true, c.arrived)
		c.listener.evict(c.listener.heads.begin(c), tooManyHeads, c.listener.heads.limit)
	case fasthttp.StateIdle:
		c.(*conn).concludes()
		c.(*conn).turns(false, time.Now())
	case fasthttp.StateClosed: // unlike Close, this is on the connection's goroutine
		c.(*conn).concludes()
	}
}

// answers begins the writing of a verdict, whose caller gives up a timeout after its
// headers came. Where Hooks depend on whether all of it goes out before, and the caller
// is gone already, the connection is closed: it must not read of an allow that is undone.
func (c *conn) answers(timeout time.Duration) {
	c.due, c.sent = c.arrived.Add(timeout), false
	if c.delivery.IsOpen() && c.hasLeft() {
		_ = c.raw.Close()
	}
}

// hasLeft reports whether the caller has closed its side. It does not wait.
func (c *conn) hasLeft() bool {
	if err := c.Conn.SetReadDeadline(time.Time{}); err != nil {
		return true
	}
	c.socket.peeks = true
	defer func() { c.socket.peeks = false }()
	var next [1]byte
	n, err := c.Conn.Read(next[:])
	c.pending = append(c.pending, next[:n]...)
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// concludes is the end of a request, once nothing more is written about it.
func (c *conn) concludes() { c.delivery.Settle(c.sent) }

func (c *conn) turns(busy bool, now time.Time) {
	c.since.Store(now.UnixNano())
	c.busy.Store(busy)
}

// verify is crypto/tls's hook in the handshake, with what the client sent.
func (c *conn) verify(state tls.ConnectionState) (err error) {
	defer func() {
		if value := recover(); value != nil {
			c.listener.records.panicked(value, debug.Stack())
			err = errPanicked
		}
	}()
	if len(state.PeerCertificates) == 0 {
		return nil // the configuration says whether it may do without
	}
	if c.chains, c.shown, err = c.listener.verify(state.PeerCertificates, c.peer); err != nil {
		return fmt.Errorf("verify the client certificate: %w", err)
	}
	return nil
}

// What ends a handshake besides crypto/tls: a bug of ours, and a connection whose
// cluster has more than its share.
var (
	errPanicked = errors.New("the dispatcher failed")
	errNoSlot   = errors.New("too many connections")
)

// belongTo makes the connection count for the cluster that its caller has shown
// to be, and reports whether it may stay. One that may not has lost its slot.
func (c *conn) belongTo(cluster string) bool {
	if c.owner == cluster {
		return true
	}
	victim := c.listener.slots.claim(c, cluster)
	if victim != c {
		c.listener.evict(victim, tooManyOpen, c.listener.cfg.Connections)
	}
	return victim != c
}

// Handshake makes the TLS handshake within the header timeout. fasthttp calls
// it first of all; after a failure, reads and writes fail.
func (c *conn) Handshake() error {
	if err := c.SetDeadline(time.Now().Add(c.listener.cfg.HeaderTimeout)); err != nil {
		return err
	}
	if err := c.Conn.Handshake(); err != nil {
		c.lingers.Store(!errors.Is(err, os.ErrDeadlineExceeded))
		c.listener.records.handshakeFailed(c.RemoteAddr(), err)
		return err
	}
	c.turns(false, time.Now())
	if !c.belongTo(c.shown) {
		c.listener.evict(c, tooManyOpen, c.listener.cfg.Connections)
		return errNoSlot
	}
	return c.SetDeadline(time.Time{})
}

// SetReadDeadline gives a cluster with a certificate as much time for its first
// request as between any two: kube-apiserver's client opens connections ahead
// of need, and closing one just as it is used is a failed call.
func (c *conn) SetReadDeadline(t time.Time) error {
	if c.arrived.IsZero() && c.owner != "" {
		t = time.Now().Add(c.listener.cfg.IdleTimeout)
	}
	return c.Conn.SetReadDeadline(t)
}

// Read reads what comes next.
func (c *conn) Read(p []byte) (int, error) {
	switch {
	case c.handed:
		return 0, io.EOF
	case len(c.pending) > 0:
		n := copy(p, c.pending)
		c.pending = c.pending[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// Write writes p within the write timeout. fasthttp's own timeout would cover
// answers only: not its refusals, not "100 Continue". After a failure the connection
// is closed: crypto/tls would try for 5 s more to take its leave.
func (c *conn) Write(p []byte) (int, error) {
	if c.muted {
		c.muted = false
		return len(p), nil
	}
	until := time.Now().Add(c.listener.cfg.WriteTimeout)
	if c.delivery.IsOpen() && c.due.Before(until) {
		until = c.due
	}
	n, err := 0, c.SetWriteDeadline(until)
	if err == nil {
		n, err = c.Conn.Write(p)
	}
	if c.sent = err == nil; !c.sent {
		_ = c.raw.Close()
	}
	return n, err
}

// Close closes the connection and gives its place to the next.
func (c *conn) Close() error {
	if c.lingers.Load() {
		c.linger()
	}
	defer c.listener.slots.leave(c)
	defer c.listener.heads.end(c)
	return c.Conn.Close()
}

// lingerTimeout is how long a caller may take to read why it is turned away.
const lingerTimeout = 500 * time.Millisecond

// linger says that nothing more comes and drops what the caller still sends.
// Closing on unread bytes would reset the connection, and what we said last
// could be lost with it.
func (c *conn) linger() {
	_ = c.Conn.CloseWrite()
	if tcp, ok := c.raw.(interface{ CloseWrite() error }); ok {
		_ = tcp.CloseWrite()
	}
	_ = c.raw.SetReadDeadline(time.Now().Add(lingerTimeout))
	_, _ = io.Copy(io.Discard, c.raw)
}
