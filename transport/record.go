// SPDX-License-Identifier: Apache-2.0

package transport

import "net"

// records is what TLS reads from and writes to. It counts the TLS records that have come whole
// (RFC 8446, 5.1), so that a connection knows, without asking TLS, whether there
// are more of them than it has read.
type records struct {
	net.Conn
	header  [5]byte
	length  int // of header so far
	missing int // bytes of the record that has begun
	whole   int // records since the count was set to 0
	written int64
}

// Write implements net.Conn.
func (r *records) Write(p []byte) (int, error) {
	n, err := r.Conn.Write(p)
	r.written += int64(n)
	return n, err
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
