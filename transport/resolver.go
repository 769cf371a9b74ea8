// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
)

// ResolverConfig is the configuration of a Resolver. Zero values mean the defaults.
type ResolverConfig struct {
	// Targets returns the Targets that Run keeps current.
	Targets   func() []*Target
	Addresses AddressPolicy
	Interval  time.Duration // between two resolutions of one name; 10 s
	// Timeout is how long each Target waits for one lookup; 5 s. The lookup itself, in
	// which net joins those of one name, may go on for as long as net has it try
	// (resolv.conf's timeout and attempts); Targets that look meanwhile join it.
	Timeout time.Duration
	Server  string // host:port of a DNS server; empty: the system's
	// Warm connects to the new Endpoints of a Target that has others already. The
	// Target keeps its Endpoints until Warm returns. nil: the first calls connect.
	Warm func(added []*Endpoint)
	// Circuits is notified of each change of a circuit of an Endpoint, as
	// breaker.Settings.Changed is. nil: nobody is.
	Circuits func(t *Target, endpoint netip.AddrPort, c breaker.Change)
	// Replicas returns how many processes call the same Targets. Bursts of budgets are
	// divided by it, and open circuits are probed that much less often. nil: this one
	// alone.
	Replicas func() int
}

// The defaults of ResolverConfig.
const (
	DefaultResolveInterval = 10 * time.Second
	DefaultResolveTimeout  = 5 * time.Second
)

const lookupsAtOnce = 16

// Resolver keeps the Endpoints of Targets current: names are looked up in the
// background, never on the request path, and the last good addresses are kept.
type Resolver struct {
	cfg   ResolverConfig
	dns   *net.Resolver
	fresh chan struct{} // of what Refresh looks up; Run, which may be slow, has its own
}

// NewResolver returns a Resolver. It does nothing until Run or Refresh.
func NewResolver(cfg ResolverConfig) *Resolver {
	if cfg.Interval == 0 {
		cfg.Interval = DefaultResolveInterval
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultResolveTimeout
	}
	r := &Resolver{cfg: cfg, dns: net.DefaultResolver, fresh: make(chan struct{}, lookupsAtOnce)}
	if cfg.Server != "" {
		r.dns = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, cfg.Server)
		}}
	}
	return r
}

// Run resolves until ctx is done.
func (r *Resolver) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			r.resolve(ctx, r.cfg.Targets(), make(chan struct{}, lookupsAtOnce))
			// A tenth of jitter keeps replicas from asking in step.
			timer.Reset(r.cfg.Interval - time.Duration(rand.Int64N(int64(r.cfg.Interval/10)+1)))
		}
	}
}

// Refresh resolves those of the Targets that have no Endpoints yet and returns when
// each has been tried or ctx is done.
func (r *Resolver) Refresh(ctx context.Context, targets ...*Target) {
	var missing []*Target
	for _, t := range targets {
		if len(t.Endpoints()) == 0 {
			missing = append(missing, t)
		}
	}
	r.resolve(ctx, missing, r.fresh)
}

// resolve looks up the hosts of all targets, as many at a time as there are slots.
func (r *Resolver) resolve(ctx context.Context, targets []*Target, slots chan struct{}) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, t := range targets {
		select {
		case <-ctx.Done():
			return
		case slots <- struct{}{}:
		}
		wg.Go(func() {
			defer func() { <-slots }()
			r.resolveTarget(ctx, t)
		})
	}
}

// resolveTarget replaces the Endpoints of t. A host that gave no address that may
// be dialled keeps its last good ones.
func (r *Resolver) resolveTarget(ctx context.Context, t *Target) {
	t.resolving.Lock()
	defer t.resolving.Unlock()
	t.sharedBy(r.cfg.Replicas)
	var (
		list []*Endpoint
		last *error
	)
	for i := range t.origins {
		o := &t.origins[i]
		addresses, err := r.lookup(ctx, o)
		if err != nil {
			last = &err
			list = append(list, t.endpointsOf(o)...)
		}
		for _, a := range addresses {
			list = append(list, r.endpointFor(t, o, a))
		}
	}
	t.lastErr.Store(last)
	if added := t.added(list); len(added) > 0 && r.cfg.Warm != nil {
		r.cfg.Warm(added)
	}
	t.replace(list)
}

// lookup returns the addresses of an origin's host that may be dialled, sorted.
func (r *Resolver) lookup(ctx context.Context, o *origin) ([]netip.AddrPort, error) {
	ips, err := r.lookupHost(ctx, o.host)
	if err != nil {
		return nil, err
	}
	var allowed []netip.AddrPort
	var refused []error
	for _, ip := range ips {
		at := netip.AddrPortFrom(ip.Unmap(), o.port)
		if err := r.cfg.Addresses.Check(at); err != nil {
			refused = append(refused, err)
			continue
		}
		allowed = append(allowed, at)
	}
	if len(allowed) == 0 {
		return nil, fmt.Errorf("no address of %s may be dialled: %w", o.host, errors.Join(refused...))
	}
	slices.SortFunc(allowed, netip.AddrPort.Compare)
	return slices.Compact(allowed), nil
}

func (r *Resolver) lookupHost(ctx context.Context, host string) ([]netip.Addr, error) {
	if ip, ok := ParseHost(host); ok {
		return []netip.Addr{ip}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	ips, err := r.dns.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", host, err)
	}
	return ips, nil
}

// endpointFor returns the Endpoint that t has for the address, or a new one.
func (r *Resolver) endpointFor(t *Target, o *origin, address netip.AddrPort) *Endpoint {
	for _, e := range t.Endpoints() {
		if e.origin == o && e.address == address {
			return e
		}
	}
	settings := t.breaking
	settings.Replicas = r.cfg.Replicas
	if r.cfg.Circuits != nil {
		settings.Changed = func(c breaker.Change) { r.cfg.Circuits(t, address, c) }
	}
	return newEndpoint(o, address, settings)
}
