// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// connected returns the two ends of a TCP connection.
func connected(t *testing.T) (near, far *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dialled, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = dialled.Close(), accepted.Close() })
	return dialled.(*net.TCPConn), accepted.(*net.TCPConn)
}

// What has come over a connection is told apart without waiting: bytes, the end of
// them, a connection that is broken, and nothing at all, which alone says that the
// caller is still there.
func TestReadArrived(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(near, far *net.TCPConn) error
		data string
		want error
	}{
		"nothing": {func(_, _ *net.TCPConn) error { return nil }, "", os.ErrDeadlineExceeded},
		"bytes":   {func(_, far *net.TCPConn) error { _, err := io.WriteString(far, "abc"); return err }, "abc", nil},
		"the end": {func(_, far *net.TCPConn) error { return far.CloseWrite() }, "", io.EOF},
		"bytes and the end": {func(_, far *net.TCPConn) error {
			_, err := io.WriteString(far, "abc")
			return errors.Join(err, far.Close())
		}, "abc", nil},
		"a reset":     {func(_, far *net.TCPConn) error { return errors.Join(far.SetLinger(0), far.Close()) }, "", syscall.ECONNRESET},
		"our own end": {func(near, _ *net.TCPConn) error { return near.Close() }, "", net.ErrClosed},
		"a past deadline": {func(near, far *net.TCPConn) error {
			_, err := io.WriteString(far, "abc")
			return errors.Join(err, near.SetReadDeadline(time.Now().Add(-time.Second)))
		}, "", os.ErrDeadlineExceeded},
	} {
		near, far := connected(t)
		if err := tt.do(near, far); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s := socket{Conn: near, peeks: true}
		p := make([]byte, 8)
		n, err := s.Read(p)
		for !errors.Is(tt.want, os.ErrDeadlineExceeded) && errors.Is(err, os.ErrDeadlineExceeded) { // until it is here
			n, err = s.Read(p)
		}
		if n != len(tt.data) || string(p[:max(n, 0)]) != tt.data || !errors.Is(err, tt.want) {
			t.Errorf("%s: %d bytes %q, %v", name, n, p, err)
		}
	}
	pipe, other := net.Pipe() // which has no descriptor to ask
	defer other.Close()
	defer pipe.Close()
	if n, err := (&socket{Conn: pipe, peeks: true}).Read(make([]byte, 8)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a pipe: %d bytes, %v", n, err)
	}
}

// A socket that does not peek waits for what comes.
func TestSocketWaits(t *testing.T) {
	near, far := connected(t)
	read := make(chan string, 1)
	go func() {
		p := make([]byte, 8)
		n, _ := (&socket{Conn: near}).Read(p)
		read <- string(p[:n])
	}()
	if _, err := io.WriteString(far, "abc"); err != nil {
		t.Fatal(err)
	}
	if got := <-read; got != "abc" {
		t.Errorf("read %q", got)
	}
}

// halves is a connection of which one side can be closed.
type halves struct {
	net.Conn
	ended bool
}

func (h *halves) CloseWrite() error {
	h.ended = true
	return nil
}

// Who is turned away reads that nothing more comes before it has sent everything.
func TestLingerEndsTheServersSide(t *testing.T) {
	near, far := net.Pipe()
	raw := &halves{Conn: near}
	c := &conn{Conn: tls.Server(raw, &tls.Config{MinVersion: tls.VersionTLS12}), raw: raw}
	if err := far.Close(); err != nil {
		t.Fatal(err)
	}
	if c.linger(); !raw.ended {
		t.Error("the server's side is open")
	}
}
