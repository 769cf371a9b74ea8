// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// socket is the connection below TLS. It belongs to the goroutine of its conn.
type socket struct {
	net.Conn
	peeks bool // Read does not wait: it fails as at a deadline where nothing has come
}

// Read implements net.Conn.
func (s *socket) Read(p []byte) (int, error) {
	if s.peeks {
		return readArrived(s.Conn, p)
	}
	return s.Conn.Read(p)
}

// readArrived reads what has come, and does not wait. Where nothing has, it fails as at
// a deadline.
func readArrived(c net.Conn, p []byte) (n int, err error) {
	readable, ok := c.(syscall.Conn)
	if !ok {
		return 0, os.ErrDeadlineExceeded
	}
	raw, err := readable.SyscallConn()
	if err != nil {
		return 0, err
	}
	closed := raw.Read(func(fd uintptr) bool {
		n, err = syscall.Read(int(fd), p)
		return true
	})
	switch {
	case closed != nil:
		return 0, closed
	case errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR):
		return 0, os.ErrDeadlineExceeded
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}
