// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// conn is one caller's TLS connection. It belongs to the goroutine that serves
// it; only Close may come from elsewhere.
type conn struct {
	*tls.Conn
	raw      net.Conn
	listener *listener

	// chains are the verified chains of the client certificate, if there is one.
	chains [][]*x509.Certificate
	// arrived is when the first byte of the current request came; zero before
	// the first request.
	arrived time.Time
	// used is set once a byte of a request has come.
	used atomic.Bool
	// lingers is set when the caller must get to read why it is turned away.
	lingers atomic.Bool
}

func newConn(raw net.Conn, l *listener) *conn {
	return &conn{Conn: tls.Server(raw, l.cfg.TLS), raw: raw, listener: l}
}

// connOf returns the connection that ctx came over.
func connOf(ctx *fasthttp.RequestCtx) *conn { return ctx.Conn().(*conn) }

// connState is fasthttp's hook. A connection becomes active when a byte of a
// request has come, not before, because ReduceMemoryUsage makes fasthttp wait
// for that byte without a buffer. That is where the deadline of an admission
// starts: kube-apiserver sends the headers in one write.
func connState(c net.Conn, state fasthttp.ConnState) {
	if state == fasthttp.StateActive {
		c := c.(*conn)
		c.arrived = time.Now()
		c.used.Store(true)
	}
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
	c.chains = c.ConnectionState().VerifiedChains
	return c.SetDeadline(time.Time{})
}

// SetReadDeadline gives a caller with a certificate as much time for its first
// request as between any two: kube-apiserver's client opens connections ahead
// of need, and closing one just as it is used is a failed call.
func (c *conn) SetReadDeadline(t time.Time) error {
	if c.arrived.IsZero() && len(c.chains) > 0 {
		t = time.Now().Add(c.listener.cfg.IdleTimeout)
	}
	return c.Conn.SetReadDeadline(t)
}

// Write writes p within the write timeout. fasthttp's own timeout would cover
// answers only: not its refusals, not "100 Continue".
func (c *conn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// Close closes the connection and gives its place to the next.
func (c *conn) Close() error {
	if c.lingers.Load() {
		c.linger()
	}
	defer c.listener.forget(c)
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
