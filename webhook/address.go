// SPDX-License-Identifier: Apache-2.0

package webhook

import "net/netip"

// AddressPolicy says which addresses may be dialled (configuration.md E2):
// loopback, link-local, unspecified, multicast and cloud metadata addresses and
// our own listeners are forbidden unless Allowed names them.
type AddressPolicy struct {
	Allowed []netip.Prefix
	Own     []netip.AddrPort // the process's own listeners; never allowed
}

// Check returns why addr may not be dialled, or nil. IPv4-mapped addresses are
// judged as the IPv4 address that they are.
func (p AddressPolicy) Check(addr netip.AddrPort) error { panic("stub") }

// ParseHost returns the address that host is in any spelling that a resolver
// accepts: dotted, decimal, octal, hexadecimal, bracketed, mapped, with a zone;
// and "localhost" with its subdomains. ok is false for a name that needs DNS.
func ParseHost(host string) (addr netip.Addr, ok bool) { panic("stub") }
