// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// AddressPolicy says which addresses may be dialled (row E2 of docs/contract.md):
// loopback, link-local, unspecified, multicast and cloud metadata addresses and
// our own listeners are forbidden unless Allowed names them. Whoever may write a
// configuration must not reach, through a tier that many clusters share, what
// only this host can reach.
type AddressPolicy struct {
	Allowed []netip.Prefix
	Own     []netip.AddrPort // the process's own listeners; never allowed
}

// metadata are the addresses at which clouds hand out credentials and that are
// not link-local.
var metadata = []netip.Addr{
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("168.63.129.16"),   // Azure
	netip.MustParseAddr("192.0.0.192"),     // Oracle
	netip.MustParseAddr("fd00:ec2::254"),   // AWS
	netip.MustParseAddr("fd20:ce::254"),    // Google
}

// embedding are the prefixes beside ::ffff:0:0/96 whose addresses end in an IPv4
// address: NAT64 (RFC 6052), translated (RFC 2765) and compatible (RFC 4291).
var embedding = []netip.Prefix{
	netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("::ffff:0:0:0/96"),
	netip.MustParsePrefix("::/96"),
}

// Check returns why addr may not be dialled, or nil. Addresses that embed an
// IPv4 address are judged as that address.
func (p AddressPolicy) Check(addr netip.AddrPort) error {
	ip := canonical(addr.Addr())
	if p.isOwn(ip, addr.Port()) {
		return fmt.Errorf("%s is a listener of the dispatcher itself", addr)
	}
	for _, prefix := range p.Allowed {
		if prefix.Contains(ip) {
			return nil
		}
	}
	if kind := forbiddenKind(ip); kind != "" {
		return fmt.Errorf("%s is %s; allowedNetworks does not name it", ip, kind)
	}
	return nil
}

// isOwn takes a listener on the unspecified address for one on every address of
// this host that the policy would otherwise let through: loopback is what a
// configuration could name without knowing the host.
func (p AddressPolicy) isOwn(ip netip.Addr, port uint16) bool {
	for _, own := range p.Own {
		if own.Port() != port {
			continue
		}
		if at := canonical(own.Addr()); at == ip || (at.IsUnspecified() && (ip.IsLoopback() || ip.IsUnspecified())) {
			return true
		}
	}
	return false
}

func canonical(ip netip.Addr) netip.Addr {
	ip = ip.Unmap().WithZone("")
	if ip.IsLoopback() || ip.IsUnspecified() {
		return ip
	}
	for _, prefix := range embedding {
		if prefix.Contains(ip) {
			b := ip.As16()
			return netip.AddrFrom4([4]byte(b[12:]))
		}
	}
	return ip
}

func forbiddenKind(ip netip.Addr) string {
	switch {
	case ip.IsUnspecified():
		return "the unspecified address"
	case ip.IsLoopback():
		return "a loopback address"
	case ip.IsLinkLocalUnicast():
		return "a link-local address"
	case ip.IsMulticast() || ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "a multicast address"
	}
	for _, m := range metadata {
		if ip == m {
			return "a cloud metadata address"
		}
	}
	return ""
}

// ParseHost returns the address that host is in any spelling that a resolver
// accepts: dotted, decimal, octal, hexadecimal, bracketed, mapped, with a zone;
// and "localhost" with its subdomains. ok is false for a name that needs DNS.
func ParseHost(host string) (addr netip.Addr, ok bool) {
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip, true
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), true
	}
	return parseLooseIPv4(name)
}

// parseLooseIPv4 reads what inet_aton(3) does: one to four parts, each decimal,
// octal or hexadecimal, the last one filling the rest.
func parseLooseIPv4(host string) (netip.Addr, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var ip uint64
	for i, part := range parts {
		n, err := parseLooseNumber(part)
		limit, shift := uint64(1)<<8, uint(8*(3-i))
		if i == len(parts)-1 {
			limit, shift = uint64(1)<<uint(8*(4-i)), 0
		}
		if err != nil || n >= limit {
			return netip.Addr{}, false
		}
		ip |= n << shift
	}
	return netip.AddrFrom4([4]byte{byte(ip >> 24), byte(ip >> 16), byte(ip >> 8), byte(ip)}), true
}

func parseLooseNumber(s string) (uint64, error) {
	switch {
	case strings.HasPrefix(s, "0x"):
		return strconv.ParseUint(s[2:], 16, 32)
	case len(s) > 1 && s[0] == '0':
		return strconv.ParseUint(s[1:], 8, 32)
	}
	return strconv.ParseUint(s, 10, 32)
}
