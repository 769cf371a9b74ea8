// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net"
	"net/netip"
)

// ownAddresses returns where listeners can be reached: no webhook may be served
// there. One on the unspecified address is reached at every address of the host.
// Listeners whose port is not known yet are left out.
func ownAddresses(listeners ...string) []netip.AddrPort {
	var own []netip.AddrPort
	for _, l := range listeners {
		tcp, err := net.ResolveTCPAddr("tcp", l)
		if err != nil || tcp.Port == 0 {
			continue
		}
		port := uint16(tcp.Port)
		if ip, ok := netip.AddrFromSlice(tcp.IP); ok && !ip.IsUnspecified() {
			own = append(own, netip.AddrPortFrom(ip.Unmap(), port))
			continue
		}
		own = append(own, netip.AddrPortFrom(netip.IPv6Unspecified(), port))
		for _, ip := range hostAddresses() {
			own = append(own, netip.AddrPortFrom(ip, port))
		}
	}
	return own
}

// hostAddresses returns the addresses of this host's interfaces.
func hostAddresses() []netip.Addr {
	found, err := net.InterfaceAddrs()
	if err != nil {
		return nil // the unspecified address stands for loopback all the same
	}
	var addresses []netip.Addr
	for _, f := range found {
		if prefix, err := netip.ParsePrefix(f.String()); err == nil {
			addresses = append(addresses, prefix.Addr())
		}
	}
	return addresses
}
