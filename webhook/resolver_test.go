// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/admission-dispatcher/dispatcher/webhook"
)

// zone is a DNS server on loopback with one name.
type zone struct {
	address string

	mu        sync.Mutex
	addresses []string // nil: NXDOMAIN
	silent    bool
	failing   bool   // SERVFAIL
	missing   string // a name that is NXDOMAIN
}

func newZone(t *testing.T, addresses ...string) *zone {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	z := &zone{address: conn.LocalAddr().String(), addresses: addresses}
	done := make(chan struct{})
	go func() {
		defer close(done)
		z.serve(conn)
	}()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	return z
}

func (z *zone) set(silent bool, addresses ...string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.silent, z.addresses, z.failing = silent, addresses, false
}

func (z *zone) fail() {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.failing = true
}

func (z *zone) miss(name string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.missing = name
}

func (z *zone) serve(conn net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if answer := z.answer(buf[:n]); answer != nil {
			_, _ = conn.WriteTo(answer, from)
		}
	}
}

func (z *zone) answer(query []byte) []byte {
	z.mu.Lock()
	defer z.mu.Unlock()
	var m dnsmessage.Message
	if z.silent || m.Unpack(query) != nil || len(m.Questions) == 0 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	switch {
	case z.failing:
		m.RCode = dnsmessage.RCodeServerFailure
	case z.addresses == nil || z.missing == q.Name.String():
		m.RCode = dnsmessage.RCodeNameError
	}
	if m.RCode != dnsmessage.RCodeSuccess {
		packed, _ := m.Pack()
		return packed
	}
	for _, text := range z.addresses {
		ip := netip.MustParseAddr(text)
		header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}
		if q.Type == dnsmessage.TypeA && ip.Is4() {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: ip.As4()}})
		}
		if q.Type == dnsmessage.TypeAAAA && ip.Is6() {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}})
		}
	}
	packed, err := m.Pack()
	if err != nil {
		return nil
	}
	return packed
}

func addressesOf(t *webhook.Target) []string {
	var all []string
	for _, e := range t.Endpoints() {
		all = append(all, e.Address().String())
	}
	return all
}

// pass is Run for one pass over target.
func pass(z *zone, target *webhook.Target) {
	ctx, cancel := context.WithCancel(context.Background())
	passes := 0
	r := webhook.NewResolver(webhook.ResolverConfig{
		Server: z.address, Timeout: 100 * time.Millisecond, Interval: time.Millisecond,
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

	z.set(false, "10.0.0.2", "10.0.0.3")
	pass(z, target)
	isAt(t, target, "10.0.0.2:443", "10.0.0.3:443")
	if target.Endpoints()[0] != kept {
		t.Error("an endpoint that stays is another one")
	}
	for name, change := range map[string]func(){
		"F24 NXDOMAIN":                        func() { z.set(false) },
		"F24 SERVFAIL":                        func() { z.set(false, "10.0.0.9"); z.fail() },
		"F24 no answer":                       func() { z.set(true) },
		"F24 rebinding to loopback":           func() { z.set(false, "127.0.0.1") },
		"F24 rebinding to a metadata address": func() { z.set(false, "169.254.169.254") },
	} {
		t.Run(name, func(t *testing.T) {
			change()
			pass(z, target)
			isAt(t, target, "10.0.0.2:443", "10.0.0.3:443")
		})
	}
	t.Run("F24 only what may be dialled", func(t *testing.T) {
		z.set(false, "127.0.0.1", "10.0.0.9")
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
	z.miss("two.example.com.")
	pass(z, target)
	isAt(t, target, "10.0.0.1:443")
	z.miss("")
	pass(z, target)
	isAt(t, target, "10.0.0.1:443", "10.0.0.1:444")
	z.miss("one.example.com.")
	z.set(false, "10.0.0.2")
	pass(z, target)
	isAt(t, target, "10.0.0.1:443", "10.0.0.2:444")
}

// Refresh asks only for what nobody has asked for yet.
func TestRefresh(t *testing.T) {
	z := newZone(t, "10.0.0.1")
	target := newNamed(t)
	r := webhook.NewResolver(webhook.ResolverConfig{Server: z.address, Targets: func() []*webhook.Target { return []*webhook.Target{target} }})
	r.Refresh(t.Context())
	z.set(false, "10.0.0.2")
	r.Refresh(t.Context())
	isAt(t, target, "10.0.0.1:443")
}

// Until its name has been looked up a webhook is unreachable, and says why.
func TestUnresolved(t *testing.T) {
	w := newWorld(t, func(net.Conn) {})
	target := newNamed(t)
	w.fails(target, patience, webhook.Unreachable)
	z := newZone(t)
	r := webhook.NewResolver(webhook.ResolverConfig{Server: z.address, Timeout: 100 * time.Millisecond,
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
