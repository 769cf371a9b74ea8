// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"net/netip"
	"testing"
)

func TestAddressOf(t *testing.T) {
	for _, tt := range []struct {
		from net.Addr
		want netip.Addr
	}{
		{&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1}, netip.MustParseAddr("10.0.0.1")},
		{&net.TCPAddr{IP: net.ParseIP("::ffff:10.0.0.1"), Port: 1}, netip.MustParseAddr("10.0.0.1")},
		{&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}, netip.MustParseAddr("fe80::1")},
		{&net.UnixAddr{Name: "socket"}, netip.Addr{}},
	} {
		if got := addressOf(tt.from); got != tt.want {
			t.Errorf("A24 of %v: %v, want %v", tt.from, got, tt.want)
		}
	}
}
