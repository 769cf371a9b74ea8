// SPDX-License-Identifier: Apache-2.0

package app

import (
	"log/slog"
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
		at := tcp.AddrPort()
		ip, port := at.Addr().Unmap().WithZone(""), at.Port() // 0.0.0.0 may come as ::ffff:0.0.0.0
		if ip.IsValid() && !ip.IsUnspecified() {
			own = append(own, netip.AddrPortFrom(ip, port))
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

// connections returns how many connections of callers there may be: as many as
// configured, but never more than half of the descriptors. Callers must not take
// those that calls to webhooks need, and one too many is better closed at once
// than left waiting where nobody accepts it.
func connections(configured int, log *slog.Logger) int {
	half := descriptorLimit() / 2
	if half == 0 || configured <= half {
		return configured
	}
	log.Warn("limits.connections is above half of the descriptors that the process may open, and is lowered",
		"limits.connections", configured, "lowered", half)
	return half
}
