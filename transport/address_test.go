// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/transport"
)

func TestAddressPolicy(t *testing.T) {
	none := transport.AddressPolicy{}
	own := transport.AddressPolicy{
		Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")},
		Own:     []netip.AddrPort{netip.MustParseAddrPort("10.1.2.3:8443"), netip.MustParseAddrPort("[::]:8081")},
	}
	wide := transport.AddressPolicy{
		Allowed: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/128")},
		Own:     own.Own,
	}
	for _, row := range []struct {
		address string
		policy  transport.AddressPolicy
		allowed bool
	}{
		{"10.1.2.3:443", none, true},
		{"[2001:db8::1]:443", none, true},
		{"172.17.0.1:443", none, true},
		{"127.0.0.1:443", none, false},
		{"127.8.9.10:443", none, false},
		{"[::1]:443", none, false},
		{"[::ffff:127.0.0.1]:443", none, false},
		{"[64:ff9b::7f00:1]:443", none, false},
		{"[64:ff9b::a9fe:a9fe]:443", none, false},
		{"[64:ff9b::a01:203]:443", none, true},
		{"[::127.0.0.1]:443", none, false},
		{"[::169.254.169.254]:443", none, false},
		{"[::ffff:0:127.0.0.1]:443", none, false},
		{"[::ffff:169.254.169.254]:80", none, false},
		{"[::1%lo]:443", none, false},
		{"[::ffff:0.0.0.0]:443", none, false},
		{"[::ffff:224.0.0.1]:443", none, false},
		{"192.0.0.192:80", none, false},
		{"[fd20:ce::254]:80", none, false},
		{"0.0.0.0:443", none, false},
		{"[::]:443", none, false},
		{"169.254.1.1:443", none, false},
		{"169.254.169.254:80", none, false},
		{"[fe80::1%eth0]:443", none, false},
		{"224.0.0.1:443", none, false},
		{"[ff02::1]:443", none, false},
		{"255.255.255.255:443", none, false},
		{"100.100.100.200:80", none, false},
		{"168.63.129.16:80", none, false},
		{"[fd00:ec2::254]:80", none, false},
		{"127.0.0.1:443", own, true},
		{"[::ffff:127.0.0.1]:443", own, true},
		{"[::1]:443", own, false},
		{"10.1.2.3:443", own, true},
		{"10.1.2.3:8443", own, false},
		{"127.0.0.1:8081", own, false},
		{"[::1]:8081", own, false},
		{"[::ffff:10.1.2.3]:8443", own, false},
		{"[64:ff9b::10.1.2.3]:8443", own, false},
		{"10.1.2.4:8443", own, true},
		{"127.0.0.1:8443", own, true},
		{"10.1.2.4:8081", own, true},
		{"0.0.0.0:8081", wide, false},
		{"0.0.0.0:8082", wide, true},
		{"[::]:8082", wide, true},
	} {
		t.Run("E2 "+row.address, func(t *testing.T) {
			err := row.policy.Check(netip.MustParseAddrPort(row.address))
			if (err == nil) != row.allowed {
				t.Errorf("Check: %v", err)
			}
		})
	}
}

func TestParseHost(t *testing.T) {
	for host, want := range map[string]string{
		"127.0.0.1": "127.0.0.1", "127.1": "127.0.0.1", "127.0.1": "127.0.0.1", "2130706433": "127.0.0.1",
		"0x7f000001": "127.0.0.1", "0x7f.0.0.1": "127.0.0.1", "0177.0.0.1": "127.0.0.1", "017700000001": "127.0.0.1",
		"0X7F.1": "127.0.0.1", "127.0.0.1.": "127.0.0.1", "0": "0.0.0.0", "::1": "::1", "[::1]": "::1",
		"::ffff:127.0.0.1": "::ffff:127.0.0.1", "fe80::1%eth0": "fe80::1%eth0", "localhost": "127.0.0.1",
		"LOCALHOST": "127.0.0.1", "localhost.": "127.0.0.1", "a.localhost": "127.0.0.1", "169.254.169.254": "169.254.169.254",
		"0xa9fea9fe": "169.254.169.254", "[127.0.0.1]": "127.0.0.1", "0x7f.0x0.0x0.0x1": "127.0.0.1", "0177.0000.0.01": "127.0.0.1",
		"10.65535": "10.0.255.255", "10.1.65535": "10.1.255.255", "4294967295": "255.255.255.255", "2852039166": "169.254.169.254",
	} {
		if got, ok := transport.ParseHost(host); !ok || got.String() != want {
			t.Errorf("E2 %q is %v, %v; want %s", host, got, ok, want)
		}
	}
	for _, host := range []string{"", "example.com", "policy.shop.svc", "localhost.example.com", "notlocalhost", "1.2.3.4.5", "256.256.256.256", "0x1.example", "4294967296", "1..2", "08.1.1.1", "0x", ".1", "+1", "-1", "1_0", "10.65536.1", "10.16777216", "0x100000000"} {
		if got, ok := transport.ParseHost(host); ok {
			t.Errorf("E2 %q is %v", host, got)
		}
	}
}

func FuzzParseHost(f *testing.F) {
	for _, seed := range []string{"127.0.0.1", "0x7f.1", "::1", "a.b", "017700000001"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, host string) {
		got, ok := transport.ParseHost(host)
		if plain, err := netip.ParseAddr(host); err == nil && (!ok || got != plain) {
			t.Errorf("%q is %v, %v; netip reads %v", host, got, ok, plain)
		}
		if ok && !got.IsValid() {
			t.Errorf("%q is no address", host)
		}
	})
}

// E2 holds for the address that is dialled, whatever was checked before.
func TestForbiddenAtDial(t *testing.T) {
	w := newWorld(t, func(net.Conn) {})
	target := w.target() // by a Resolver that may use loopback
	w.client = transport.NewClient(transport.ClientConfig{})
	w.fails(target, patience, hook.Unreachable)
	if w.connections.Load() != 0 {
		t.Error("E2: it was dialled")
	}
}

func TestForbiddenEndpoint(t *testing.T) {
	w := newWorld(t, func(net.Conn) {})
	target, err := transport.NewTarget(w.spec)
	if err != nil {
		t.Fatal(err)
	}
	r := transport.NewResolver(transport.ResolverConfig{})
	r.Refresh(context.Background(), target)
	if n := len(target.Endpoints()); n != 0 {
		t.Errorf("E2: %d endpoints", n)
	}
	w.fails(target, patience, hook.Unreachable)
}
