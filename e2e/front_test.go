// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net"
	"sync/atomic"
)

// front is the address that clusters have registered: a TCP proxy before
// whichever dispatcher serves now, as a Service or a load balancer would be.
// Connections stay with the dispatcher that they were made to.
type front struct {
	listener net.Listener
	target   atomic.Pointer[string] // nil: connections are refused
}

func newFront() (*front, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &front{listener: l}
	go f.accept()
	return f, nil
}

func (f *front) address() string { return f.listener.Addr().String() }

// point sends new connections to an address; empty: they are closed at once.
func (f *front) point(address string) {
	if address == "" {
		f.target.Store(nil)
		return
	}
	f.target.Store(&address)
}

func (f *front) accept() {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}
		go f.serve(conn)
	}
}

func (f *front) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	address := f.target.Load()
	if address == nil {
		return
	}
	behind, err := net.Dial("tcp", *address)
	if err != nil {
		return
	}
	defer func() { _ = behind.Close() }()
	go func() {
		_, _ = io.Copy(behind, conn)
		_ = behind.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(conn, behind)
}

func (f *front) close() { _ = f.listener.Close() }
