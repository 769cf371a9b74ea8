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
	z.silent, z.addresses = silent, addresses
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
	if z.addresses == nil {
		m.RCode = dnsmessage.RCodeNameError
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

// pass resolves target once, as Run does at each interval.
func pass(z *zone, target *webhook.Target) {
	ctx, cancel := context.WithCancel(context.Background())
	asked := make(chan struct{})
	r := webhook.NewResolver(webhook.ResolverConfig{
		Server: z.address, Timeout: 100 * time.Millisecond, Interval: time.Hour,
		Targets: func() []*webhook.Target { close(asked); return []*webhook.Target{target} },
	})
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	<-asked
	cancelWhenResolved(cancel, target, done)
}

// cancelWhenResolved ends Run; a pass that is under way ends with its look-ups.
func cancelWhenResolved(cancel func(), target *webhook.Target, done <-chan struct{}) {
	deadline := time.After(200 * time.Millisecond) // above the look-up's timeout
	before := addressesOf(target)
	for slices.Equal(before, addressesOf(target)) {
		select {
		case <-deadline:
			cancel()
			<-done
			return
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	<-done
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

// Several addresses are used in turn.
func TestEndpointsInTurn(t *testing.T) {
	one, two := answering(t, ok(allowBody)), answering(t, ok(allowBody))
	one.spec.Endpoints = append(one.spec.Endpoints, webhook.EndpointSpec{Address: two.address, CABundle: two.authority.PEM})
	target := one.target()
	for range 6 {
		one.allows(target)
	}
	if one.requests.Load() != 3 || two.requests.Load() != 3 {
		t.Errorf("%d and %d calls", one.requests.Load(), two.requests.Load())
	}
}
