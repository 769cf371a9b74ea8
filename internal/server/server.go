// SPDX-License-Identifier: Apache-2.0

// Package server is the inbound HTTPS side: it accepts what kube-apiserver
// sends, refuses everything else, and hands each review to the dispatcher.
package server

import (
	"context"
	"math"
	"net"
	"sync"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/trust"
)

// Decider decides admissions; *dispatcher.Dispatcher does.
type Decider interface {
	Dispatch(ctx context.Context, req dispatcher.Request) dispatcher.Verdict
	// Decline denies an admission whose review cannot be judged.
	Decline(ctx context.Context, req dispatcher.Request, defect dispatcher.Defect) dispatcher.Verdict
}

// Observer is told of every request and connection that is turned away, on the
// goroutine that does it: it must be quick, and must not block.
type Observer interface {
	// TurnedAway has the cluster that the credentials belong to, whatever the path
	// says; empty where that is nobody. The reason is one of Reasons.
	TurnedAway(cluster, reason string)
}

// unobserved is told where nobody observes.
type unobserved struct{}

func (unobserved) TurnedAway(string, string) {}

// Server serves admissions on one listener. It is safe for concurrent use.
type Server struct {
	cfg     Config
	http    *fasthttp.Server
	records records
	memory  *memory

	// decisions carries the shutdown to the Decider: it is cancelled when the
	// answer can reach nobody any more.
	decisions context.Context
	cancel    context.CancelFunc
	lame      atomic.Bool
	aged      atomic.Int64 // connections closed for their age
	verifier  *trust.Verifier

	mu       sync.Mutex
	listener *listener // nil before Serve
	stopped  bool
}

// New returns a Server.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg.withDefaults(), verifier: trust.NewVerifier()}
	s.memory = newMemory(s.cfg.BodyBytes)
	s.records.log, s.records.observer = s.cfg.Logger, s.cfg.Observer
	s.decisions, s.cancel = context.WithCancel(context.Background())
	s.http = &fasthttp.Server{
		Handler:        s.handle,
		HeaderReceived: headerReceived,
		ExpectHandler:  s.headIsRead,
		ErrorHandler:   s.notReceived,
		ConnState:      connState,
		Logger:         silent{},

		// The listener limits connections. fasthttp must never come to its own
		// limit: it would write to a connection before its TLS handshake, and
		// accept nothing until that is done.
		Concurrency: 2*s.cfg.Connections + 1024,

		ReadBufferSize:     headerLimit + uriLimit + 1024,
		WriteBufferSize:    32 << 10,
		MaxRequestBodySize: math.MaxInt32, // it never reads one: receive does
		ReadTimeout:        s.cfg.HeaderTimeout,
		IdleTimeout:        s.cfg.IdleTimeout,
		ReduceMemoryUsage:  true, // an idle connection holds no buffer; connState relies on it

		DisablePreParseMultipartForm: true,
		SecureErrorLogMessage:        true,
		NoDefaultServerHeader:        true,
		NoDefaultDate:                true,
		NoDefaultContentType:         true,
	}
	return s
}

// silent drops what fasthttp says: it quotes requests. What matters is recorded
// by us.
type silent struct{}

func (silent) Printf(string, ...any) {}

// Serve accepts TLS connections from ln, a plain TCP listener, until Shutdown,
// which makes it return nil.
func (s *Server) Serve(ln net.Listener) error {
	l := newListener(ln, s.cfg, s.verifier, &s.records)
	if !s.start(l) {
		return l.Close()
	}
	return s.http.Serve(l)
}

// start makes l the listener, unless Shutdown came first.
func (s *Server) start(l *listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener = l
	return !s.stopped
}

// stop keeps Serve from starting and returns the listener if it has.
func (s *Server) stop() *listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	return s.listener
}

// Connections returns the number of open connections.
func (s *Server) Connections() int {
	s.mu.Lock()
	l := s.listener
	s.mu.Unlock()
	if l == nil {
		return 0
	}
	return l.slots.count()
}

// BodyBytes returns how much memory requests' bodies take, those that are held for
// late calls included, by cluster, in bytes. A cluster without any is left out.
func (s *Server) BodyBytes() map[string]int64 { return s.memory.held() }

// ConnectionsLimit returns how many there may be.
func (s *Server) ConnectionsLimit() int { return s.cfg.Connections }

// ConnectionsAged returns how many connections were closed for their age.
func (s *Server) ConnectionsAged() int64 { return s.aged.Load() }

// LameDuck makes every further answer carry "Connection: close".
func (s *Server) LameDuck() { s.lame.Store(true) }

// Shutdown stops accepting and returns when every request in flight has been
// answered, or with ctx's error when ctx is done; whatever is still open then is
// closed.
func (s *Server) Shutdown(ctx context.Context) error {
	s.LameDuck()
	defer s.cancel()
	l := s.stop()
	if l == nil {
		return nil
	}
	defer l.closeAll()
	_ = l.Close() // fasthttp closes it too, if it has come that far, and tells the error
	l.closeUnused()
	return s.http.ShutdownWithContext(ctx)
}
