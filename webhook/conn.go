// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// conn is a connection that knows whether it has been used and whether it is
// idle, and can tell whether there is something to read.
type conn struct {
	*tls.Conn
	raw    syscall.RawConn // nil where the system has none
	used   bool            // there was a request
	served bool            // it has been idle since it was made
	idle   bool
	until  time.Time // when it is too old to be kept
	probe  [1]byte
}

func newConn(plain net.Conn, secured *tls.Conn) *conn {
	c := &conn{Conn: secured, until: time.Now().Add(maxAge - rand.N(maxAge/5))}
	if tcp, ok := plain.(syscall.Conn); ok {
		c.raw, _ = tcp.SyscallConn()
	}
	return c
}

// Close closes the connection, and says goodbye first if it is idle. Otherwise
// the webhook may read nothing any more, and crypto/tls would wait up to 5 s for
// room to say it, whatever the deadline of the call.
func (c *conn) Close() error {
	if c.idle {
		return c.Conn.Close()
	}
	return c.NetConn().Close()
}

// wake readies the connection for a request. It reports false if there is
// something to read that no request has asked for.
func (c *conn) wake() bool {
	stale := c.used && c.readable()
	c.used, c.idle = true, false
	return !stale
}

// readable reports whether bytes, or the end, of the stream wait to be read. It
// does not block and takes nothing out of the stream.
func (c *conn) readable() bool {
	if c.raw == nil {
		return false
	}
	waiting := false
	err := c.raw.Read(func(fd uintptr) bool {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		waiting = err != syscall.EAGAIN && err != syscall.EINTR
		return true
	})
	return waiting || err != nil
}

// rest readies the connection for being idle. It reports false if it is too old
// for that, or if bytes, or the
// end, of the stream have been taken off the socket already, decrypted or in TLS
// records read ahead: nobody's answer, which readable would not see.
func (c *conn) rest() bool {
	if time.Now().After(c.until) {
		return false
	}
	if c.SetReadDeadline(time.Unix(1, 0)) != nil {
		return false
	}
	_, err := c.Read(c.probe[:]) // past its deadline, it leaves the socket alone
	c.idle = errors.Is(err, os.ErrDeadlineExceeded) && c.SetDeadline(time.Time{}) == nil
	c.served = c.served || c.idle
	return c.idle
}

// talk writes req and reads resp within the deadline. clean tells whether the
// connection can carry another request. A webhook may answer, and close, before
// it has read the whole review: its verdict stands, as it does with net/http.
func talk(pool *fasthttp.HostClient, c net.Conn, req *fasthttp.Request, resp *fasthttp.Response, deadline time.Time) (clean bool, err error) {
	if err := c.SetDeadline(deadline); err != nil {
		return false, err
	}
	w := pool.AcquireWriter(c)
	err = req.Write(w)
	if err == nil {
		err = w.Flush()
	}
	pool.ReleaseWriter(w)
	if err != nil && isTimeout(err) {
		return false, err
	}
	whole := err == nil
	r := pool.AcquireReader(c)
	defer pool.ReleaseReader(r)
	if _, err := r.Peek(1); err != nil {
		if errors.Is(err, io.EOF) {
			err = fasthttp.ErrConnectionClosed
		}
		return false, &silentError{err: err}
	}
	err = resp.ReadLimitBody(r, pool.MaxResponseBodySize)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // in the middle of an answer
	}
	if err != nil {
		return false, err
	}
	return whole && r.Buffered() == 0 && !resp.ConnectionClose(), nil
}
