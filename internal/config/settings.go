// SPDX-License-Identifier: Apache-2.0

package config

import (
	"log/slog"
	"net"
	"net/netip"
	"strconv"

	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/transport"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// Registry returns the settings of the registry that the configuration asks for.
// own are listeners of the process that only their opener knows; log may be nil.
func (c *Config) Registry(own []netip.AddrPort, log *slog.Logger) registry.Settings {
	s := registry.Settings{
		Interval:   c.ReloadInterval.Duration,
		FileRoots:  c.FileRoots,
		AllowEmpty: c.AllowEmpty,
		Compile: compile.Options{
			Addresses:  transport.AddressPolicy{Allowed: c.allowed(), Own: append(c.own(), own...)},
			Bypass:     c.bypass(),
			FailOpen:   c.failOpen(),
			MaxTimeout: c.Deadline.Max.Duration,
			Encoding:   webhook.ParseEncoding(c.Encoding),
		},
		Logger: log,
	}
	for i := range c.Sources {
		s.Sources = append(s.Sources, c.Sources[i].manifests())
	}
	return s
}

func (c *Config) allowed() []netip.Prefix {
	prefixes := make([]netip.Prefix, len(c.AllowedNetworks))
	for i, cidr := range c.AllowedNetworks {
		prefixes[i] = netip.MustParsePrefix(cidr) // Load validated it
	}
	return prefixes
}

// own returns the process's listeners as far as the file names them by number.
func (c *Config) own() []netip.AddrPort {
	var own []netip.AddrPort
	for _, listen := range []string{c.Listen, c.Admin.Listen} {
		host, port, _ := net.SplitHostPort(listen)
		ip, ok := transport.ParseHost(host)
		if host == "" {
			ip, ok = netip.IPv6Unspecified(), true
		}
		if n, err := strconv.ParseUint(port, 10, 16); ok && err == nil && n > 0 {
			own = append(own, netip.AddrPortFrom(ip, uint16(n)))
		}
	}
	return own
}

// bypass returns the built-in rules, unless they are off, and the further ones.
func (c *Config) bypass() []exempt.Rule {
	var rules []exempt.Rule
	if c.Bypass.Defaults {
		rules = exempt.DefaultBypass(c.Bypass.DispatcherNamespace)
	}
	return append(rules, c.Bypass.Rules...)
}

// failOpen returns the built-in rules, unless they are off, and the further ones.
func (c *Config) failOpen() []exempt.Rule {
	var rules []exempt.Rule
	if c.FailOpen.Defaults {
		rules = exempt.DefaultFailOpen()
	}
	return append(rules, c.FailOpen.Rules...)
}
