// SPDX-License-Identifier: Apache-2.0

// Package proxy is a TCP proxy on the loopback interface that can be told to do
// harm. It needs no privileges, and knows nothing of what it carries but where
// a TLS handshake ends.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
)

// Proxy forwards TCP connections to a target, as far as its Fault lets it. It is
// safe for concurrent use.
type Proxy struct {
	targets atomic.Pointer[[]string]
	fault   atomic.Pointer[Fault]
	counts  counts
	context context.Context // ends dialling
	cancel  context.CancelFunc
	running sync.WaitGroup // of links

	mu     sync.Mutex // one change at a time
	door   *door
	flap   *flapper // nil while nothing flaps
	closed bool

	linksMu sync.Mutex
	links   map[*link]struct{} // nil once closed
}

// Listen returns a Proxy on a free port of 127.0.0.1 that forwards to target, a
// host:port, and does no harm yet.
func Listen(target string) (*Proxy, error) {
	p := &Proxy{links: map[*link]struct{}{}}
	p.Retarget(target)
	p.fault.Store(&Fault{})
	var err error
	if p.door, err = newDoor(p.accept); err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	p.context, p.cancel = context.WithCancel(context.Background())
	if err := p.door.turn(doorOpen); err != nil {
		p.door.close()
		p.cancel()
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	return p, nil
}

// Addr returns where the Proxy listens, as host:port. It never changes.
func (p *Proxy) Addr() string { return p.door.address }

// Retarget makes addrs, at least one, the targets of connections to come, each of
// which goes to one of them at random. Those that exist stay where they are.
func (p *Proxy) Retarget(addrs ...string) { p.targets.Store(&addrs) }

// target returns where a new connection goes.
func (p *Proxy) target() string {
	targets := *p.targets.Load()
	return targets[rand.IntN(len(targets))]
}

// Set makes f what the Proxy does wrong, in place of what it did before, for
// connections that exist as well as for new ones. What has happened to a
// connection is not undone: one that was silenced stays silent. It fails for
// Faults that make no sense, with errors.ErrUnsupported where this system cannot
// do it, and after Close; the Proxy then does what it did before. What went wrong
// in flapping is told by the next Set, or by Close.
func (p *Proxy) Set(f Fault) error {
	if err := f.check(); err != nil {
		return fmt.Errorf("set a fault: %w", err)
	}
	if f.BlackHole && !hasBlackHole {
		return fmt.Errorf("set a black hole: %w", errors.ErrUnsupported)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fmt.Errorf("set a fault: %w", net.ErrClosed)
	}
	err := p.steady()
	if f.Flap == (Flap{}) {
		return errors.Join(err, p.apply(&f))
	}
	err = errors.Join(err, p.apply(&Fault{}))
	p.flap = startFlapper(p, f)
	return err
}

// Close ends everything: when it returns, no connection and no goroutine of the
// Proxy is left.
func (p *Proxy) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	err := p.steady()
	p.cancel()
	p.door.close()
	p.linksMu.Lock()
	for l := range p.links {
		l.end()
	}
	p.links = nil
	p.linksMu.Unlock()
	p.running.Wait()
	return err
}

// steady ends the flapping, and says what went wrong in it.
func (p *Proxy) steady() error {
	if p.flap == nil {
		return nil
	}
	err := p.flap.stop()
	p.flap = nil
	return err
}

func (p *Proxy) apply(f *Fault) error {
	p.fault.Store(f)
	if err := p.door.turn(f.door()); err != nil {
		return fmt.Errorf("open or close %s: %w", p.door.address, err)
	}
	if f.Sever {
		p.sever()
	}
	return nil
}

func (p *Proxy) sever() {
	p.linksMu.Lock()
	defer p.linksMu.Unlock()
	for l := range p.links {
		l.reset()
	}
}

// accept takes over a connection that has come in.
func (p *Proxy) accept(client *net.TCPConn) {
	l := newLink(p, client, p.counts.accepted.Add(1))
	p.linksMu.Lock()
	defer p.linksMu.Unlock()
	if p.links == nil {
		l.end()
		return
	}
	p.links[l] = struct{}{}
	p.running.Go(func() {
		l.run()
		p.linksMu.Lock()
		delete(p.links, l)
		p.linksMu.Unlock()
	})
}
