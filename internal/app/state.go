// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net"
	"net/netip"
	"sync"
)

// state is where in its life the process is.
type state struct {
	mu       sync.Mutex
	ready    chan struct{} // closed once the admission listener accepts
	address  net.Addr
	departed bool
}

func (s *state) channel() chan struct{} {
	if s.ready == nil {
		s.ready = make(chan struct{})
	}
	return s.ready
}

func (s *state) serving(at net.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.address = at
	close(s.channel())
}

func (s *state) stopping() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.departed = true
}

// reasons returns why the process should get no traffic.
func (s *state) reasons() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.departed:
		return []string{"stopping"}
	case s.address == nil:
		return []string{"no configuration has been loaded yet; see the log, or run: dispatcher validate"}
	}
	return nil
}

// Ready is closed once admissions are accepted.
func (a *App) Ready() <-chan struct{} {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	return a.state.channel()
}

// Address returns the address of the admission listener, nil before Ready.
func (a *App) Address() net.Addr {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	return a.state.address
}

// AdminAddress returns the address of the admin listener.
func (a *App) AdminAddress() net.Addr { return a.admin.Addr() }

// own returns the process's listeners as far as they are known by number: no
// webhook may be served there.
func (a *App) own() []netip.AddrPort {
	var own []netip.AddrPort
	for _, address := range []string{a.cfg.Listen, a.admin.Addr().String()} {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			continue
		}
		if host == "" {
			host = netip.IPv6Unspecified().String()
		}
		if at, err := netip.ParseAddrPort(net.JoinHostPort(host, port)); err == nil && at.Port() != 0 {
			own = append(own, at)
		}
	}
	return own
}
