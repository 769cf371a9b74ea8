// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/loadtest/zone"
	"github.com/admission-dispatcher/dispatcher/transport"
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

func addressesOf(t *transport.Target) []string {
	var all []string
	for _, e := range t.Endpoints() {
		all = append(all, e.Address().String())
	}
	return all
}

// pass is Run for one pass over target.
func pass(z *zone.Server, target *transport.Target) { passWarm(z, target, nil) }

// passWarm is pass with new Endpoints warmed.
func passWarm(z *zone.Server, target *transport.Target, warm func([]*transport.Endpoint)) {
	passAs(transport.ResolverConfig{Server: z.Address(), Timeout: patience, Warm: warm}, target)
}

func passAs(cfg transport.ResolverConfig, target *transport.Target) {
	ctx, cancel := context.WithCancel(context.Background())
	passes := 0
	cfg.Interval = 1
	cfg.Targets = func() []*transport.Target {
		if passes++; passes > 1 {
			cancel()
			return nil
		}
		return []*transport.Target{target}
	}
	transport.NewResolver(cfg).Run(ctx)
}

func newNamed(t *testing.T) *transport.Target {
	t.Helper()
	target, err := transport.NewTarget(transport.TargetSpec{URL: "https://policy.shop.svc/check"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	return target
}

func isAt(t *testing.T, target *transport.Target, want ...string) {
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
	for name, change := range map[string]zone.Zone{
		"F24 NXDOMAIN":                        at(),
		"F24 SERVFAIL":                        {Failing: true},
		"F24 no answer":                       {Silent: true},
		"F24 rebinding to loopback":           at("127.0.0.1"),
		"F24 rebinding to a metadata address": at("169.254.169.254"),
	} {
		t.Run(name, func(t *testing.T) {
			timeout := patience
			if change.Silent {
				timeout = 20 * time.Millisecond
			}
			z.Set(change)
			passAs(transport.ResolverConfig{Server: z.Address(), Timeout: timeout}, target)
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
	target, err := transport.NewTarget(transport.TargetSpec{URL: "https://policy.shop.svc/", Endpoints: []transport.EndpointSpec{
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

// Names are looked up every 10 s, less up to a tenth, so that replicas do not ask in
// step.
func TestResolveInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var passes []time.Time
		r := transport.NewResolver(transport.ResolverConfig{Targets: func() []*transport.Target {
			if passes = append(passes, time.Now()); len(passes) == 20 {
				cancel()
			}
			return nil
		}})
		r.Run(ctx)
		apart := map[time.Duration]bool{}
		for i := range passes[1:] {
			d := passes[i+1].Sub(passes[i])
			if d < 9*time.Second || d > 10*time.Second {
				t.Errorf("%v between two passes", d)
			}
			apart[d] = true
		}
		if len(apart) < 2 {
			t.Errorf("the passes are as far apart as the others: %v", apart)
		}
	})
}

// Refresh asks only for what nobody has asked for yet.
func TestRefresh(t *testing.T) {
	z := newZone(t, "10.0.0.1")
	target := newNamed(t)
	r := transport.NewResolver(transport.ResolverConfig{Server: z.Address()})
	r.Refresh(t.Context(), target)
	z.Set(at("10.0.0.2"))
	r.Refresh(t.Context(), target)
	isAt(t, target, "10.0.0.1:443")
}

// Until its name has been looked up a webhook is unreachable, and says why.
func TestUnresolved(t *testing.T) {
	w := newWorld(t, func(net.Conn) {})
	target := newNamed(t)
	w.fails(target, patience, hook.Unreachable)
	z := newZone(t)
	r := transport.NewResolver(transport.ResolverConfig{Server: z.Address(), Timeout: patience})
	r.Refresh(t.Context(), target)
	if _, err := w.call(target, patience); err == nil || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("the error is %v", err)
	}
	z.Set(at("127.0.0.1", "169.254.169.254"))
	r.Refresh(t.Context(), target)
	if err := target.Unresolved(); err == nil || !strings.Contains(err.Error(), "127.0.0.1 is a loopback address") || !strings.Contains(err.Error(), "169.254.169.254 is a link-local address") {
		t.Errorf("the error is %v", err)
	}
	z.Set(at("10.0.0.1"))
	if r.Refresh(t.Context(), target); target.Unresolved() != nil {
		t.Error(target.Unresolved())
	}
}

// Look-ups of many Targets at a time take turns.
func TestLookupsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := transport.NewResolver(transport.ResolverConfig{})
		var all []*transport.Target
		for i := range 40 {
			target, err := transport.NewTarget(transport.TargetSpec{URL: fmt.Sprintf("https://10.0.0.%d/", i)})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, target)
		}
		for _, list := range [][]*transport.Target{all[:20], all[20:]} {
			r.Refresh(t.Context(), list...)
		}
		for i, target := range all {
			isAt(t, target, fmt.Sprintf("10.0.0.%d:443", i))
		}
	})
}

// Two servers at one address, told apart by their names, are two Endpoints, and stay
// those that they are.
func TestEndpointsOfOneAddress(t *testing.T) {
	target, err := transport.NewTarget(transport.TargetSpec{URL: "https://policy.shop.svc/", Endpoints: []transport.EndpointSpec{
		{Address: "10.0.0.1:443", ServerName: "one.example.com"}, {Address: "10.0.0.1:443", ServerName: "two.example.com"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	passAs(transport.ResolverConfig{}, target)
	before := target.Endpoints()
	if len(before) != 2 || before[0] == before[1] {
		t.Fatalf("the endpoints are %v", before)
	}
	if passAs(transport.ResolverConfig{}, target); !slices.Equal(before, target.Endpoints()) {
		t.Error("they are others after another look")
	}
}

// A Target waits for a look-up as long as is configured, whoever else waits for the
// same name, and says so. net's own time limit, which names the server, is longer.
func TestLookupsAreWaitedForAsConfigured(t *testing.T) {
	z := newZone(t)
	z.Set(zone.Zone{Silent: true})
	r := transport.NewResolver(transport.ResolverConfig{Server: z.Address(), Timeout: 20 * time.Millisecond})
	one, two := newNamed(t), newNamed(t)
	r.Refresh(t.Context(), one, two)
	for _, target := range []*transport.Target{one, two} {
		var lookup *net.DNSError
		if err := target.Unresolved(); !errors.As(err, &lookup) || !lookup.IsTimeout || lookup.Server != "" {
			t.Errorf("the error is %v", err)
		}
	}
}

// Whoever wants to know is notified of the circuits of each Endpoint.
func TestCircuitsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPiped(t, transport.ClientConfig{}, allowing)
		w.gate = func(context.Context, string) error { return errors.New("nobody is there") }
		target, err := transport.NewTarget(w.spec)
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		r := transport.NewResolver(transport.ResolverConfig{Circuits: func(of *transport.Target, at netip.AddrPort, c breaker.Change) {
			if of != target {
				t.Error("another Target's")
			}
			told = append(told, fmt.Sprintf("%v %v", at, c.To))
		}})
		r.Refresh(t.Context(), target)
		for range 3 {
			w.fails(target, patience, hook.Unreachable)
		}
		if !slices.Equal(told, []string{"10.0.0.1:443 " + breaker.Open.String()}) {
			t.Errorf("told %q", told)
		}
	})
}

// Several addresses share the calls.
func TestEndpointsShareTheCalls(t *testing.T) {
	one, two := answering(t, ok(allowBody)), answering(t, ok(allowBody))
	one.spec.Endpoints = append(one.spec.Endpoints, transport.EndpointSpec{Address: two.address, CABundle: two.authority.PEM})
	target := one.target()
	const calls = 64 // one of two gets none in one of 2^63 runs
	for range calls {
		one.allows(target)
	}
	if a, b := one.requests.Load(), two.requests.Load(); a == 0 || b == 0 || a+b != calls {
		t.Errorf("%d and %d calls", a, b)
	}
}

// A call goes to the less busy of two random Endpoints: of three, the one that has a
// call under way gets no other.
func TestCallsGoToTheLessBusy(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	var hold atomic.Bool
	var w *world
	w = newPiped(t, transport.ClientConfig{}, func(c net.Conn) {
		w.eachRequest(func(*http.Request) string {
			if hold.CompareAndSwap(true, false) {
				close(asked)
				<-release
			}
			return ok(allowBody)
		})(c)
	})
	addresses := []string{"10.0.0.1:443", "10.0.0.2:443", "10.0.0.3:443"}
	w.spec.Endpoints = nil
	for _, address := range addresses {
		w.spec.Endpoints = append(w.spec.Endpoints, transport.EndpointSpec{Address: address})
	}
	target := w.target()
	hold.Store(true)
	var call sync.WaitGroup
	call.Go(func() { w.allows(target) })
	<-asked
	for range 64 { // each of the two others gets none in one of 2^64 runs
		w.allows(target)
	}
	for i, address := range addresses {
		// A second connection is that of a second call at a time.
		if n := len(w.dialsOf(address)); n != 1 {
			t.Errorf("%d connections to %s, %d calls under way", n, address, target.Endpoints()[i].Outstanding())
		}
	}
	close(release)
	call.Wait()
}

// newNamedWorld is a world over pipes that is reached by its name, and its Target,
// which is at 10.0.0.1.
func newNamedWorld(t *testing.T, cfg transport.ClientConfig, do behaviour) (*world, *zone.Server, *transport.Target) {
	t.Helper()
	w := newPiped(t, cfg, do)
	w.spec.Endpoints = nil
	target, err := transport.NewTarget(w.spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	z := newZone(t, "10.0.0.1")
	pass(z, target)
	return w, z, target
}

// Addresses that are new are connected to before they take part. The ones before serve
// until then.
func TestNewAddressesAreConnectedFirst(t *testing.T) {
	w, z, target := newNamedWorld(t, transport.ClientConfig{}, allowing)
	dialling, release := make(chan string, 8), make(chan struct{})
	w.gate = func(_ context.Context, address string) error {
		if address != "10.0.0.1:443" {
			dialling <- address
			<-release
		}
		return nil
	}
	w.allows(target)
	z.Set(at("10.0.0.2"))
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		passWarm(z, target, w.client.Warm)
	}()
	select {
	case address := <-dialling:
		if address != "10.0.0.2:443" {
			t.Errorf("%s is dialled", address)
		}
	case <-passed:
		t.Fatal("the new address takes part before it is dialled")
	}
	isAt(t, target, "10.0.0.1:443")
	w.allows(target)
	close(release)
	<-passed
	isAt(t, target, "10.0.0.2:443")
	for range 3 {
		w.allows(target)
	}
	if one, two := len(w.dialsOf("10.0.0.1:443")), len(w.dialsOf("10.0.0.2:443")); one != 1 || two != 1 {
		t.Errorf("%d and %d connections", one, two)
	}
}

// A new address that cannot be connected to takes part nevertheless, after the connect
// timeout: its breaker judges it. Of very many a few are connected to. The first ones of
// a Target are not waited for.
func TestWarmingIsBounded(t *testing.T) {
	var dials atomic.Int64
	w, z, target := newNamedWorld(t, transport.ClientConfig{ConnectTimeout: 20 * time.Millisecond}, allowing)
	w.gate = func(ctx context.Context, _ string) error { dials.Add(1); <-ctx.Done(); return ctx.Err() }
	z.Set(at("10.0.0.1", "10.0.0.2", "10.0.0.3"))
	passWarm(z, target, w.client.Warm)
	isAt(t, target, "10.0.0.1:443", "10.0.0.2:443", "10.0.0.3:443")
	if n := dials.Load(); n != 2 {
		t.Errorf("%d connections are tried", n)
	}
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf("10.0.1.%d", i))
	}
	z.Set(at(many...))
	passWarm(z, target, w.client.Warm)
	if n := len(target.Endpoints()); n != 40 || dials.Load() != 2+16 {
		t.Errorf("%d endpoints, %d connections are tried", n, dials.Load())
	}
	first := newNamed(t)
	passWarm(z, first, func([]*transport.Endpoint) { t.Error("the first addresses are waited for") })
	if n := len(first.Endpoints()); n != 40 {
		t.Errorf("%d endpoints", n)
	}
}

// An address that is gone keeps the calls under way, and no connection: idle ones are
// closed at once, one in use when its call is over.
func TestAddressesThatLeaveAreDrained(t *testing.T) {
	asked, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{}, 2)
	var w *world
	var hold atomic.Bool
	w, z, target := newNamedWorld(t, transport.ClientConfig{}, func(c net.Conn) {
		w.eachRequest(func(*http.Request) string {
			if hold.CompareAndSwap(true, false) {
				close(asked)
				<-release
			}
			return ok(allowBody)
		})(c)
		ended <- struct{}{}
	})
	left := target.Endpoints()[0]
	w.allows(target) // over a connection that will be idle
	hold.Store(true)
	var call sync.WaitGroup
	call.Go(func() { w.allows(target) })
	<-asked
	w.allows(target) // over another one, idle from now on
	z.Set(at("10.0.0.2"))
	pass(z, target)
	isAt(t, target, "10.0.0.2:443")
	await(t, ended)
	if left.Outstanding() != 1 {
		t.Errorf("%d calls are under way", left.Outstanding())
	}
	select {
	case <-ended:
		t.Error("the connection of the call under way is closed")
	default:
	}
	close(release)
	call.Wait()
	await(t, ended)
	w.allows(target)
	if n := len(w.dialsOf("10.0.0.2:443")); n != 1 {
		t.Errorf("%d connections to the new address", n)
	}
}

// await waits for a connection to end, for less than it takes an idle one by itself.
func await(t *testing.T, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("a connection is still open")
	}
}

// A Target that is closed while its names are looked up, or while a connection becomes
// idle, keeps no connection.
func TestClosedTargetsKeepNoConnection(t *testing.T) {
	t.Run("during a look-up", func(t *testing.T) {
		w, z, target := newNamedWorld(t, transport.ClientConfig{}, allowing)
		z.Set(at("10.0.0.2"))
		passWarm(z, target, func(added []*transport.Endpoint) {
			w.client.Warm(added)
			if n := w.connections.Load(); n != 1 {
				t.Errorf("%d connections", n)
			}
			target.Close()
		})
		if n := target.Connections(); n != 0 {
			t.Errorf("%d connections are open", n)
		}
	})
	for name, use := range map[string]func(w *world, target *transport.Target){
		"after a call":  func(w *world, target *transport.Target) { w.allows(target) },
		"after a probe": func(w *world, target *transport.Target) { _ = w.client.Probe(target, patience) },
	} {
		t.Run(name, func(t *testing.T) {
			var w *world
			w = newPiped(t, transport.ClientConfig{}, func(c net.Conn) {
				w.eachRequest(func(*http.Request) string { return ok(allowBody + strings.Repeat(" ", 40_000)) })(c)
			})
			target, closed := w.target(), false
			w.wrap = func(c net.Conn) net.Conn {
				return &restless{c, func() { closed = true; target.Close() }}
			}
			use(w, target)
			if n := target.Connections(); n != 0 || !closed {
				t.Errorf("%d connections are open; closed %v", n, closed)
			}
		})
	}
}

// restless is a connection that does something when it is about to be idle: then it is
// asked, with a deadline long ago, whether there is anything to read.
type restless struct {
	net.Conn
	do func()
}

func (c *restless) SetReadDeadline(at time.Time) error {
	if !at.IsZero() && at.Before(time.Now().Add(-time.Hour)) {
		c.do()
	}
	return c.Conn.SetReadDeadline(at)
}
