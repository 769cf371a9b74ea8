// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

const hasBlackHole = true

// unanswered is after how long a connection request on loopback counts as
// dropped.
const unanswered = 50 * time.Millisecond

// socket is a bound TCP socket.
type socket int

// Close implements io.Closer.
func (s socket) Close() error { return syscall.Close(int(s)) }

// bind returns a socket on a port of 127.0.0.1; 0 is a free one. Sockets that
// have SO_REUSEADDR may share a port unless another listens on it already.
func bind(port int) (socket, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, os.NewSyscallError("socket", err)
	}
	err = os.NewSyscallError("setsockopt", syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
	if err == nil {
		at := &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
		err = os.NewSyscallError("bind", syscall.Bind(fd, at))
	}
	if err != nil {
		return 0, errors.Join(err, syscall.Close(fd))
	}
	return socket(fd), nil
}

// reserve takes a free port and keeps it until keeper is closed.
func reserve() (keeper io.Closer, address string, err error) {
	s, err := bind(0)
	if err != nil {
		return nil, "", err
	}
	at, err := syscall.Getsockname(int(s))
	if err != nil {
		return nil, "", errors.Join(os.NewSyscallError("getsockname", err), s.Close())
	}
	bound, ok := at.(*syscall.SockaddrInet4)
	if !ok {
		return nil, "", errors.Join(fmt.Errorf("the socket has the address %v", at), s.Close())
	}
	return s, netip.AddrPortFrom(netip.AddrFrom4(bound.Addr), uint16(bound.Port)).String(), nil
}

// dig makes address a black hole: nobody accepts, and a full backlog has the
// kernel drop connection requests.
func dig(address string) (stop func(), err error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	s, err := bind(int(at.Port()))
	if err != nil {
		return nil, err
	}
	if err := syscall.Listen(int(s), 0); err != nil {
		return nil, errors.Join(os.NewSyscallError("listen", err), s.Close())
	}
	fillers, err := fill(address)
	stop = func() {
		_ = s.Close() // it carries no data that could be lost
		for _, c := range fillers {
			c.Close()
		}
	}
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// fill connects until the backlog is full.
func fill(address string) (fillers []net.Conn, err error) {
	for range 16 {
		c, err := net.DialTimeout("tcp4", address, unanswered)
		if err != nil {
			return fillers, nil //nolint:nilerr // a connection that fails is what is wanted
		}
		fillers = append(fillers, c)
	}
	return fillers, fmt.Errorf("the backlog does not fill up: %w", errors.ErrUnsupported)
}
