// SPDX-License-Identifier: Apache-2.0

// Package server is the inbound HTTPS side: it accepts what kube-apiserver
// sends, refuses everything else, and hands each review to the dispatcher.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/trust"
	"github.com/admission-dispatcher/dispatcher/registry"
)

// Decider decides admissions; *dispatcher.Dispatcher does.
type Decider interface {
	Dispatch(ctx context.Context, req dispatcher.Request, v *dispatcher.Verdict)
	// Decline denies an admission whose review cannot be judged.
	Decline(ctx context.Context, req dispatcher.Request, defect dispatcher.Defect, v *dispatcher.Verdict)
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
	aged      atomic.Int64              // connections closed for their age
	joined    atomic.Pointer[time.Time] // when replicas joined last; nil: never
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

// headIsRead makes fasthttp hand over what it has read beyond the head, and call
// handle: it reads a body up to the end of the connection, which conn says is here.
// The body is ours to read then. What fasthttp writes to make the caller go on is
// dropped.
func (s *Server) headIsRead(ctx *fasthttp.RequestCtx) int {
	c, h := connOf(ctx), &ctx.Request.Header
	c.listener.heads.end(c)
	c.announced = h.ContentLength()
	h.SetContentLength(unlimited)
	s.memory.buffers.put(ctx.Request.SwapBody(s.memory.buffers.get()))
	c.handed, c.muted = true, true
	return fasthttp.StatusContinue
}

// handle is fasthttp's hook for a request whose head has been read.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	e := exchange{Server: s, ctx: ctx, conn: connOf(ctx)}
	e.serve()
}

// notReceived is fasthttp's hook for a request that did not come to handle.
func (s *Server) notReceived(ctx *fasthttp.RequestCtx, err error) {
	e := exchange{Server: s, ctx: ctx, conn: connOf(ctx)}
	e.head, _ = readHead(&ctx.Request.Header, &s.cfg)
	e.refuse(reception(err))
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

// Joined notes that replicas have joined: connections that are open now are closed within
// Config.JoinWindow, each with an answer, so that callers find the new ones. One that is idle is
// left alone.
func (s *Server) Joined() {
	now := time.Now()
	s.joined.Store(&now)
}

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

// Config is the configuration of a Server. Zero values mean the defaults, which stand
// below.
type Config struct {
	// TLS has the certificates and says whether clients must have one; required.
	// Its ClientCAs are not used.
	TLS *tls.Config
	// Authorities returns those of the client certificates of all clusters that
	// pin none; default: there are none.
	Authorities func() *trust.Authorities
	// Snapshot returns the current Snapshot, which the Server releases; required.
	Snapshot  func() *registry.Snapshot
	Decider   Decider      // required
	Logger    *slog.Logger // required
	Observer  Observer     // default: nobody
	BodyLimit int          // bytes of a request body, also after decompression
	// BodyBytes limits the bytes of all bodies that are being read, decompressed and held.
	BodyBytes   int64
	Decompress  bool // accept Content-Encoding gzip and zstd
	Connections int  // open ones at most
	// ConnectionAge is how old a connection may be, plus or minus a half, before
	// it is closed with its next answer; 0: as old as it likes, until Joined.
	ConnectionAge time.Duration
	// JoinWindow is within what time connections are closed, with an answer each, that
	// are older than replicas which have joined; 1 min, or ConnectionAge if that is less.
	JoinWindow    time.Duration
	HeaderTimeout time.Duration // TLS handshake, and request headers, each
	BodyTimeout   time.Duration // request body
	WriteTimeout  time.Duration // one write to a caller that does not read; 10 s
	IdleTimeout   time.Duration // between two requests
	// DefaultTimeout is for a caller that sends no ?timeout=. MaxTimeout is the
	// longest that an admission may take; chain.MaxTimeout.
	DefaultTimeout, MaxTimeout time.Duration
}

// The defaults of Config.
const (
	DefaultBodyLimit     = 36 << 20
	DefaultBodyBytes     = 512 << 20
	DefaultConnections   = 4096
	DefaultHeaderTimeout = 5 * time.Second
	DefaultBodyTimeout   = 5 * time.Second
	DefaultIdleTimeout   = 2 * time.Minute // above the 90 s of kube-apiserver
	DefaultTimeout       = 10 * time.Second
)

// The limits of what stands before the body, in bytes.
const (
	uriLimit    = 8 << 10
	headerLimit = 32 << 10
)

func (c Config) withDefaults() Config {
	if c.Authorities == nil {
		c.Authorities = func() *trust.Authorities { return nil }
	}
	if c.Observer == nil {
		c.Observer = unobserved{}
	}
	c.BodyLimit = cmp.Or(c.BodyLimit, DefaultBodyLimit)
	c.BodyBytes = cmp.Or(c.BodyBytes, DefaultBodyBytes)
	c.Connections = cmp.Or(c.Connections, DefaultConnections)
	c.JoinWindow = cmp.Or(c.JoinWindow, time.Minute)
	c.HeaderTimeout = cmp.Or(c.HeaderTimeout, DefaultHeaderTimeout)
	c.BodyTimeout = cmp.Or(c.BodyTimeout, DefaultBodyTimeout)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 10*time.Second)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, DefaultIdleTimeout)
	c.DefaultTimeout = cmp.Or(c.DefaultTimeout, DefaultTimeout)
	c.MaxTimeout = cmp.Or(c.MaxTimeout, chain.MaxTimeout)
	return c
}
