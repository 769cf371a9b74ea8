// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"time"
)

// conn is a connection that knows whether it has been used and whether it is
// idle, and can tell whether there is something to read.
type conn struct {
	*tls.Conn
	records *records
	peek    func(fd uintptr)
	waiting bool      // what peek found
	used    bool      // there was a request
	served  bool      // it has been idle since it was made
	idle    bool      // there is no request now
	until   time.Time // when it is too old to be kept
	since   time.Time // that it is idle
	probe   [1]byte

	// reads are those since the connection woke up that surely left nothing of their
	// record behind: TLS gives one record at a time, and this one was shorter than asked.
	reads int
}

// newConn returns the connection of which secured reads from plain.
func newConn(plain *records, secured *tls.Conn) *conn {
	c := &conn{Conn: secured, records: plain, until: time.Now().Add(maxAge - rand.N(maxAge/5))}
	if tcp, ok := plain.Conn.(syscall.Conn); ok {
		plain.raw, _ = tcp.SyscallConn()
	}
	plain.push = plain.pushed
	c.peek = func(fd uintptr) {
		_, _, err := syscall.Recvfrom(int(fd), c.probe[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		c.waiting = err != syscall.EAGAIN && err != syscall.EINTR
	}
	return c
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && n < len(p) {
		c.reads++
	}
	return n, err
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
	c.records.whole, c.reads = 0, 0
	return !stale
}

// readable reports whether bytes, or the end, of the stream wait to be read. It
// does not block and takes nothing out of the stream.
func (c *conn) readable() bool {
	if c.records.raw == nil {
		return false
	}
	c.waiting = false
	err := c.records.raw.Control(c.peek)
	return c.waiting || err != nil
}

// rest readies the connection for being idle. It reports false if it is too old
// for that, if TLS had something to say that is not sent yet, or if bytes, or the end, of the stream have been taken off the socket
// already, decrypted or in TLS records read ahead: nobody's answer, which readable
// would not see.
func (c *conn) rest(now time.Time) bool {
	if now.After(c.until) || len(c.records.unsent) > 0 {
		return false
	}
	c.idle = c.drained() || c.silent()
	c.served = c.served || c.idle
	return c.idle
}

// drained reports whether all that came has surely been read: as many records as
// reads that emptied one. TLS's own messages make it say no.
func (c *conn) drained() bool {
	return c.records.between() && c.records.whole == c.reads
}

// silent asks TLS whether there is more to read. Past its deadline that leaves the
// socket alone.
func (c *conn) silent() bool {
	if c.SetReadDeadline(time.Unix(1, 0)) != nil {
		return false
	}
	_, err := c.Conn.Read(c.probe[:])
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// records is what TLS reads from and writes to. It counts the TLS records that have come whole
// (RFC 8446, 5.1), so that a connection knows, without asking TLS, whether there
// are more of them than it has read. Hurried, it writes without waiting: crypto/tls
// gives a connection up of which a write has timed out.
type records struct {
	net.Conn
	raw     syscall.RawConn // nil where the system has none
	header  [5]byte
	length  int // of header so far
	missing int // bytes of the record that has begun
	whole   int // records since the count was set to 0
	written int64

	hurried bool                  // Write does not wait: what the system does not take at once is kept
	unsent  []byte                // that was kept, for flush
	push    func(fd uintptr) bool // pushed
	pushing []byte                // what it has to write
	pushErr error                 // what it met
}

// Write implements net.Conn.
func (r *records) Write(p []byte) (int, error) {
	if !r.hurried {
		n, err := r.Conn.Write(p)
		r.written += int64(n)
		return n, err
	}
	rest := p
	if len(r.unsent) == 0 && r.raw != nil {
		r.pushing, r.pushErr = p, nil
		err := r.raw.Write(r.push)
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) { // too late for who hurries, and for nobody else
			err = r.pushErr
		}
		rest, r.pushing = r.pushing, nil
		if r.written += int64(len(p) - len(rest)); err != nil {
			return len(p) - len(rest), &net.OpError{Op: "write", Net: "tcp", Addr: r.RemoteAddr(), Err: err}
		}
	}
	r.unsent = append(r.unsent, rest...)
	return len(p), nil
}

// pushed writes what the system takes at once. It is a callback of syscall.RawConn, which
// is not to wait.
func (r *records) pushed(fd uintptr) bool {
	for len(r.pushing) > 0 {
		n, err := syscall.Write(int(fd), r.pushing)
		switch {
		case n > 0:
			r.pushing = r.pushing[n:]
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return true
		default:
			r.pushErr = os.NewSyscallError("write", err)
			return true
		}
	}
	return true
}

// flush writes what was kept, and has all that follows written as usual.
func (r *records) flush() error {
	rest := r.unsent
	r.hurried, r.unsent = false, nil
	if len(rest) == 0 {
		return nil
	}
	n, err := r.Conn.Write(rest)
	r.written += int64(n)
	return err
}

// Read implements net.Conn.
func (r *records) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.pass(p[:n])
	return n, err
}

// pass counts what has come.
func (r *records) pass(p []byte) {
	for len(p) > 0 {
		if r.missing > 0 {
			n := min(r.missing, len(p))
			p, r.missing = p[n:], r.missing-n
		} else {
			n := copy(r.header[r.length:], p)
			p, r.length = p[n:], r.length+n
			if r.length < len(r.header) {
				return
			}
			r.length, r.missing = 0, int(r.header[3])<<8|int(r.header[4])
		}
		if r.missing == 0 {
			r.whole++
		}
	}
}

// between reports whether no record has begun and not ended.
func (r *records) between() bool { return r.length == 0 && r.missing == 0 }
