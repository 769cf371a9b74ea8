// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/zone"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

func newZone(t *testing.T, addresses ...string) *zone.Server {
	t.Helper()
	z, err := zone.Listen(at(addresses...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(z.Close)
	return z
}

// at is a zone with these addresses; without any, it is NXDOMAIN.
func at(addresses ...string) zone.Zone {
	if len(addresses) == 0 {
		return zone.Zone{}
	}
	return zone.Zone{Addresses: zone.Addresses(addresses...)}
}

// missing is a zone with one address for all names but one.
func missing(name, address string) zone.Zone {
	z := at(address)
	z.Missing = name
	return z
}

func addressesOf(t *webhook.Target) []string {
	var all []string
	for _, e := range t.Endpoints() {
		all = append(all, e.Address().String())
	}
	return all
}

// pass is Run for one pass over target.
func pass(z *zone.Server, target *webhook.Target) {
	ctx, cancel := context.WithCancel(context.Background())
	passes := 0
	r := webhook.NewResolver(webhook.ResolverConfig{
		Server: z.Address(), Timeout: 100 * time.Millisecond, Interval: time.Millisecond,
		Targets: func() []*webhook.Target {
			if passes++; passes > 1 {
				cancel()
				return nil
			}
			return []*webhook.Target{target}
		},
	})
	r.Run(ctx)
}

func newNamed(t *testing.T) *webhook.Target {
	t.Helper()
	target, err := webhook.NewTarget(webhook.TargetSpec{URL: "https://policy.shop.svc/check"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	return target
}

func isAt(t *testing.T, target *webhook.Target, want ...string) {
	t.Helper()
	if got := addressesOf(target); !slices.Equal(got, want) {
		t.Errorf("endpoints are %v, want %v", got, want)
	}
}

func TestResolver(t *testing.T) {
	z := newZone(t, "10.0.0.2", "10.0.0.1", "2001:db8::1")
	target := newNamed(t)
	pass(z, target)
	isAt(t, target, "10.0.0.1:443", "10.0.0.2:443", "[2001:db8::1]:443")
	kept := target.Endpoints()[1]

	z.Set(at("10.0.0.2", "10.0.0.3"))
	pass(z, target)
	isAt(t, target, "10.0.0.2:443", "10.0.0.3:443")
	if target.Endpoints()[0] != kept {
		t.Error("an endpoint that stays is another one")
	}
	for name, change := range map[string]func(){
		"F24 NXDOMAIN":                        func() { z.Set(at()) },
		"F24 SERVFAIL":                        func() { z.Set(zone.Zone{Failing: true}) },
		"F24 no answer":                       func() { z.Set(zone.Zone{Silent: true}) },
		"F24 rebinding to loopback":           func() { z.Set(at("127.0.0.1")) },
		"F24 rebinding to a metadata address": func() { z.Set(at("169.254.169.254")) },
	} {
		t.Run(name, func(t *testing.T) {
			change()
			pass(z, target)
			isAt(t, target, "10.0.0.2:443", "10.0.0.3:443")
		})
	}
	t.Run("F24 only what may be dialled", func(t *testing.T) {
		z.Set(at("127.0.0.1", "10.0.0.9"))
		pass(z, target)
		isAt(t, target, "10.0.0.9:443")
	})
}

// One dead name takes neither the others nor its own last good addresses away.
func TestOneOfSeveralNames(t *testing.T) {
	z := newZone(t, "10.0.0.1")
	target, err := webhook.NewTarget(webhook.TargetSpec{URL: "https://policy.shop.svc/", Endpoints: []webhook.EndpointSpec{
		{Address: "one.example.com:443"}, {Address: "two.example.com:444"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	z.Set(missing("two.example.com.", "10.0.0.1"))
	pass(z, target)
	isAt(t, target, "10.0.0.1:443")
	z.Set(at("10.0.0.1"))
	pass(z, target)
	isAt(t, target, "10.0.0.1:443", "10.0.0.1:444")
	z.Set(missing("one.example.com.", "10.0.0.2"))
	pass(z, target)
	isAt(t, target, "10.0.0.1:443", "10.0.0.2:444")
}

// Refresh asks only for what nobody has asked for yet.
func TestRefresh(t *testing.T) {
	z := newZone(t, "10.0.0.1")
	target := newNamed(t)
	r := webhook.NewResolver(webhook.ResolverConfig{Server: z.Address(), Targets: func() []*webhook.Target { return []*webhook.Target{target} }})
	r.Refresh(t.Context())
	z.Set(at("10.0.0.2"))
	r.Refresh(t.Context())
	isAt(t, target, "10.0.0.1:443")
}

// Until its name has been looked up a webhook is unreachable, and says why.
func TestUnresolved(t *testing.T) {
	w := newWorld(t, func(net.Conn) {})
	target := newNamed(t)
	w.fails(target, patience, webhook.Unreachable)
	z := newZone(t)
	r := webhook.NewResolver(webhook.ResolverConfig{Server: z.Address(), Timeout: 100 * time.Millisecond,
		Targets: func() []*webhook.Target { return []*webhook.Target{target} }})
	r.Refresh(t.Context())
	if _, err := w.call(target, patience); err == nil || !strings.Contains(err.Error(), "policy.shop.svc") {
		t.Errorf("the error is %v", err)
	}
}

// Several addresses share the calls.
func TestEndpointsShareTheCalls(t *testing.T) {
	one, two := answering(t, ok(allowBody)), answering(t, ok(allowBody))
	one.spec.Endpoints = append(one.spec.Endpoints, webhook.EndpointSpec{Address: two.address, CABundle: two.authority.PEM})
	target := one.target()
	const calls = 64 // one of two gets none in one of 2^63 runs
	for range calls {
		one.allows(target)
	}
	if a, b := one.requests.Load(), two.requests.Load(); a == 0 || b == 0 || a+b != calls {
		t.Errorf("%d and %d calls", a, b)
	}
}
