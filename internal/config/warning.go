// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net"
	"net/netip"

	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// Warnings returns what is allowed and hardly meant. file is what the
// configuration was read from, for people.
func (c *Config) Warnings(file string) []manifest.Problem {
	if c.Admin.TLS.ClientCAFile != "" || isLoopback(c.Admin.Listen) {
		return nil
	}
	return []manifest.Problem{{
		File:   file,
		Object: Kind,
		Field:  "admin.listen",
		Value:  c.Admin.Listen,
		Reason: "is not on loopback, and without admin.tls.clientCAFile everybody who reaches it sees the status page",
	}}
}

// isLoopback reports whether a listener can be reached from this host alone.
func isLoopback(listen string) bool {
	host, _, _ := net.SplitHostPort(listen)
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
