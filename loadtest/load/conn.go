// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// conn is a connection of a caller. A caller gives up when its timeout is over, as
// kube-apiserver does: it closes the connection. But for as long as this process
// did not run, nothing that it has not read can be called late, so that it waits for
// so much longer.
type conn struct {
	net.Conn
	pulse    *pulse
	timeout  time.Duration
	deadline atomic.Int64 // of reading, since the start of the pulse
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.deadline.Store(int64(t.Sub(c.pulse.start)))
	return c.Conn.SetReadDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	c.deadline.Store(int64(t.Sub(c.pulse.start)))
	return c.Conn.SetDeadline(t)
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		deadline, now := time.Duration(c.deadline.Load()), time.Since(c.pulse.start)
		deadline += c.pulse.stood(deadline-min(c.timeout, atLast), now)
		if now >= deadline {
			return n, err
		}
		if err := c.Conn.SetReadDeadline(c.pulse.start.Add(deadline)); err != nil {
			return n, err
		}
	}
}

// dial connects a cluster and shakes hands.
func (g *generator) dial(security *tls.Config, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := tls.Client(&conn{Conn: watch(raw), pulse: g.pulse, timeout: g.cfg.Timeout}, security)
	if err := c.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return c, nil
}
