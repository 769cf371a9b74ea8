// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"net"
	"syscall"
)

// errGone says that a connection ended while it was idle. Nothing was sent.
var errGone = errors.New("the connection had ended")

// watched is a connection that does not begin a request after its end has come.
// kube-apiserver's client reads from idle connections, and so does not use one that
// was closed; fasthttp's does.
type watched struct {
	net.Conn
	raw syscall.RawConn
}

// watch watches a connection where it can.
func watch(c net.Conn) net.Conn {
	if tcp, ok := c.(syscall.Conn); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			return &watched{c, raw}
		}
	}
	return c
}

// Write implements net.Conn.
func (w *watched) Write(p []byte) (int, error) {
	if w.over() {
		return 0, errGone
	}
	return w.Conn.Write(p)
}

// over reports whether all that is left to read is the end.
func (w *watched) over() (over bool) {
	err := w.raw.Control(func(fd uintptr) {
		var next [1]byte
		n, _, err := syscall.Recvfrom(int(fd), next[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		over = n == 0 && err == nil || errors.Is(err, syscall.ECONNRESET)
	})
	return over || err != nil
}
