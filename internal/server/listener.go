// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"net"
	"sync"
	"time"
)

// listener accepts TCP connections, limits how many are open, and puts TLS on
// top. The limit stands under TLS: a connection too many is closed without a
// byte, so that nothing a stranger does or omits can hold up accepting.
// Handshakes are made by the goroutines that serve the connections.
type listener struct {
	net.Listener
	cfg     Config
	records *records
	close   func() error

	mu   sync.Mutex
	open map[*conn]struct{}
}

func newListener(ln net.Listener, cfg Config, records *records) *listener {
	return &listener{
		Listener: ln,
		cfg:      cfg,
		records:  records,
		close:    sync.OnceValue(ln.Close),
		open:     make(map[*conn]struct{}),
	}
}

// The pauses after a failed accept. What fails is nearly always a lack of
// descriptors or memory, which passes; a listener that gave up would not.
const (
	minAcceptPause = 5 * time.Millisecond
	maxAcceptPause = time.Second
)

// Accept returns the next connection within the limit. It fails only when the
// listener is closed.
func (l *listener) Accept() (net.Conn, error) {
	pause := minAcceptPause
	for {
		raw, err := l.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		if err != nil {
			l.records.acceptFailed(err)
			time.Sleep(pause)
			pause = min(2*pause, maxAcceptPause)
			continue
		}
		if c := l.admit(raw); c != nil {
			return c, nil
		}
		l.records.tooManyConnections(raw.RemoteAddr(), l.cfg.Connections)
		_ = raw.Close()
	}
}

// admit returns raw as a conn, or nil if there are too many.
func (l *listener) admit(raw net.Conn) *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= l.cfg.Connections {
		return nil
	}
	c := newConn(raw, l)
	l.open[c] = struct{}{}
	return c
}

func (l *listener) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
}

// count returns the number of open connections.
func (l *listener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// Close stops accepting. Open connections stay open.
func (l *listener) Close() error { return l.close() }

// closeUnused closes the connections on which no request ever began. fasthttp
// closes those that are idle between requests, and would wait for these.
func (l *listener) closeUnused() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		if !c.used.Load() {
			_ = c.raw.Close()
		}
	}
}

// closeAll cuts every connection that is still open.
func (l *listener) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		_ = c.raw.Close()
	}
}
