// SPDX-License-Identifier: Apache-2.0

// Package server is the inbound HTTPS side: it accepts what kube-apiserver
// sends, refuses everything else, and hands each review to the dispatcher.
package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/registry"
)

// Decider decides admissions; *dispatcher.Dispatcher does.
type Decider interface {
	Dispatch(ctx context.Context, req dispatcher.Request) dispatcher.Verdict
}

// Config is the configuration of a Server. Zero values mean the defaults.
type Config struct {
	TLS       *tls.Config               // required: certificates, client CAs, client authentication
	Snapshot  func() *registry.Snapshot // required
	Decider   Decider                   // required
	Logger    *slog.Logger              // required
	BodyLimit int                       // bytes of a request body, also after decompression; 8 MiB
	// Connections limits open connections; 4096.
	Connections   int
	HeaderTimeout time.Duration // TLS handshake and request headers; 5 s
	BodyTimeout   time.Duration // request body; 5 s
	IdleTimeout   time.Duration // between two requests; 120 s
	// DefaultTimeout is for a caller that sends no ?timeout=; 10 s. MaxTimeout
	// is the longest that an admission may take; 30 s.
	DefaultTimeout, MaxTimeout time.Duration
}

// Server serves admissions on one listener.
type Server struct{}

// New returns a Server.
func New(cfg Config) *Server { panic("stub") }

// Serve accepts TLS connections from ln, a plain TCP listener, until Shutdown.
func (s *Server) Serve(ln net.Listener) error { panic("stub") }

// LameDuck makes every further answer carry "Connection: close".
func (s *Server) LameDuck() { panic("stub") }

// Shutdown stops accepting and returns when every request in flight has been
// answered or ctx is done.
func (s *Server) Shutdown(ctx context.Context) error { panic("stub") }
