// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// newBlackHole returns an address that drops connection requests: its listener
// accepts nothing and its backlog is full.
func newBlackHole(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	at := bound.(*syscall.SockaddrInet4)
	address := netip.AddrPortFrom(netip.AddrFrom4(at.Addr), uint16(at.Port)).String()
	for range 16 {
		c, err := net.DialTimeout("tcp", address, 50*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Skip("this kernel's backlog does not fill up")
	return ""
}

// F3: where nothing answers at all, the connect timeout ends it, of a real connection,
// too.
func TestBlackHole(t *testing.T) {
	w, _ := newSpec(t, pki.Subject{DNSNames: []string{serviceName}})
	w.client = transport.NewClient(transport.ClientConfig{Addresses: loopback, ConnectTimeout: 50 * time.Millisecond})
	w.spec.Endpoints = []transport.EndpointSpec{{Address: newBlackHole(t)}}
	_, err := w.call(w.target(), patience)
	if causeOf(err) != hook.Timeout || !strings.Contains(err.Error(), "could not be reached in time") {
		t.Errorf("the error is %v", err)
	}
}
