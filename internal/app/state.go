// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/admission-dispatcher/dispatcher/hook"
)

// state is where in its life the process is.
type state struct {
	ready chan struct{} // closed once the admission listener accepts

	mu       sync.Mutex
	address  net.Addr // of the admission listener; nil before
	stopping bool
}

func newState() state { return state{ready: make(chan struct{})} }

func (s *state) serve(at net.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.address = at
	close(s.ready)
}

func (s *state) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
}

func (s *state) now() (address net.Addr, stopping bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.address, s.stopping
}

// unready returns why the process should get no traffic.
func (a *App) unready() []string {
	address, stopping := a.state.now()
	switch {
	case stopping:
		return []string{"stopping"}
	case address != nil:
		return nil
	}
	why := []string{"no configuration has been loaded yet"}
	for _, p := range a.registry.Problems() {
		why = append(why, p.String())
	}
	return why
}

// notes returns what is wrong although the process can do its work. Anybody may read
// it, so it has no word of an API or a webhook: those could pass for ours.
func (a *App) notes() []string {
	var notes []string
	for _, s := range a.namespaces.Status() {
		if s.Stale || s.Credential != "" {
			notes = append(notes, s.String())
		}
	}
	if s := a.registry.Snapshot(); s != nil {
		for _, p := range s.Pending {
			notes = append(notes, fmt.Sprintf("webhook %s is pending: %s", p.Webhook, pendingCause(p.Err)))
		}
	}
	for _, t := range a.registry.Draining() {
		notes = append(notes, fmt.Sprintf("webhook target %s is draining: not yet safe to stop", t.URL()))
	}
	return notes
}

// pendingCause is the cause of a probe that failed; the status has the rest.
func pendingCause(err error) hook.Cause {
	if failed, ok := errors.AsType[*hook.CallError](err); ok {
		return failed.Cause
	}
	return hook.BadAnswer
}

// Ready is closed once admissions are accepted.
func (a *App) Ready() <-chan struct{} { return a.state.ready }

// Address returns the address of the admission listener, nil before Ready.
func (a *App) Address() net.Addr {
	address, _ := a.state.now()
	return address
}

// AdminAddress returns the address of the admin listener.
func (a *App) AdminAddress() net.Addr { return a.admin.Addr() }
