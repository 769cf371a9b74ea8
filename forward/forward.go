// SPDX-License-Identifier: Apache-2.0

// Package forward is a server in a workload cluster whose kube-apiserver can present no
// credential. It is called as a Service, and calls the dispatcher with the client
// certificate of its cluster. It decides nothing: requests and answers pass as they are.
package forward

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"
)

// Settings say what is forwarded, and how.
type Settings struct {
	URL         *url.URL // of the dispatcher: https, without a path
	Listen      string   // address for kube-apiservers; TLS
	AdminListen string   // address of /livez, /readyz and /metrics; plain HTTP
	Files       Files
	Requests    int           // at most at a time; default DefaultRequests
	Connections int           // at most at a time; default DefaultConnections
	LameDuck    time.Duration // of serving on when told to stop
	Logger      *slog.Logger  // default: none
}

// The bounds where Settings have none.
const (
	DefaultRequests    = 512
	DefaultConnections = 1024
)

// Limits of time. The longest timeout of a webhook is that of the Kubernetes API.
const (
	longestTimeout  = 30 * time.Second
	headerTimeout   = 10 * time.Second
	idleTimeout     = 95 * time.Second // kube-apiserver closes after 90 s
	refreshInterval = 5 * time.Second
)

// headerBytes bounds the header of a request.
const headerBytes = 64 << 10

// Forwarder is one process.
type Forwarder struct {
	settings Settings
	log      *slog.Logger
	files    *watched
	slots    chan struct{}
	metrics  *metrics
	stopping atomic.Bool

	listener, admin net.Listener
}

// New reads the files, which must be good, and opens the listeners. The caller calls Run.
func New(s Settings) (*Forwarder, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	f := &Forwarder{settings: s, log: cmp.Or(s.Logger, slog.New(slog.DiscardHandler))}
	f.slots = make(chan struct{}, cmp.Or(s.Requests, DefaultRequests))
	var err error
	if f.files, err = watch(s.Files, f.log); err != nil {
		return nil, err
	}
	f.metrics = newMetrics(f.files, f.slots)
	if f.listener, err = net.Listen("tcp", s.Listen); err != nil {
		return nil, err
	}
	if f.admin, err = net.Listen("tcp", s.AdminListen); err != nil {
		return nil, errors.Join(err, f.listener.Close())
	}
	return f, nil
}

func (s *Settings) validate() error {
	switch u := s.URL; {
	case u == nil || u.Scheme != "https" || u.Host == "":
		return errors.New("the dispatcher's URL must be https://HOST[:PORT]")
	case u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return errors.New("the dispatcher's URL must have no user, path, query or fragment: they come from the caller")
	case s.Requests < 0 || s.Connections < 0 || s.LameDuck < 0:
		return errors.New("limits and durations must not be negative")
	}
	return nil
}

// Address returns where kube-apiservers call.
func (f *Forwarder) Address() net.Addr { return f.listener.Addr() }

// AdminAddress returns where /livez, /readyz and /metrics are.
func (f *Forwarder) AdminAddress() net.Addr { return f.admin.Addr() }

// Run forwards until ctx is done, then LameDuck longer, and then until no request is left.
func (f *Forwarder) Run(ctx context.Context) error {
	tlsConfig := &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"}, // calls of one API server spread over several connections
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &f.files.current.Load().serving, nil
		},
	}
	main := &http.Server{
		Handler:           f,
		ReadHeaderTimeout: headerTimeout, // of the handshake, too
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytes,
		ErrorLog:          slog.NewLogLogger(f.log.Handler(), slog.LevelDebug), // strangers' handshakes
	}
	admin := &http.Server{Handler: f.adminHandler(), ReadTimeout: headerTimeout, WriteTimeout: headerTimeout, MaxHeaderBytes: headerBytes}
	limited := netutil.LimitListener(f.listener, cmp.Or(f.settings.Connections, DefaultConnections))

	failed := make(chan error, 2)
	go func() { failed <- main.Serve(tls.NewListener(limited, tlsConfig)) }()
	go func() { failed <- admin.Serve(f.admin) }()
	watching, stopWatching := context.WithCancel(context.Background())
	watcher := make(chan struct{})
	go func() {
		defer close(watcher)
		f.files.run(watching)
	}()
	f.log.Info("forwarder ready", "address", f.Address().String(), "admin", f.AdminAddress().String(), "dispatcher", f.settings.URL.Host)

	var err error
	left := 2
	select {
	case err = <-failed:
		left = 1
	case <-ctx.Done():
		f.drain(main)
	}
	stopWatching()
	_, _ = main.Close(), admin.Close()
	for range left {
		if closed := <-failed; !errors.Is(closed, http.ErrServerClosed) {
			err = errors.Join(err, closed)
		}
	}
	<-watcher
	f.files.close()
	return err
}

// drain serves on while others learn that this process goes: each answer closes its
// connection. Then it waits for requests under way, for as long as any may take.
func (f *Forwarder) drain(main *http.Server) {
	f.log.Info("forwarder stopping", "lameDuck", f.settings.LameDuck.String())
	f.stopping.Store(true)
	rest := time.NewTimer(f.settings.LameDuck)
	defer rest.Stop()
	<-rest.C
	ctx, cancel := context.WithTimeout(context.Background(), longestTimeout)
	defer cancel()
	_ = main.Shutdown(ctx)
}

func (f *Forwarder) adminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if reason := f.unready(time.Now()); reason != "" {
			http.Error(w, reason, http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.Handle("GET /metrics", f.metrics.handler)
	return mux
}

// unready returns why no call should come here; "": nothing is wrong. Whether the dispatcher
// answers does not count: all replicas would go at once, and a Service without endpoints
// answers nothing better.
func (f *Forwarder) unready(now time.Time) string {
	current := f.files.current.Load()
	switch {
	case f.stopping.Load():
		return "stopping"
	case now.After(current.serving.Leaf.NotAfter):
		return "the serving certificate has expired"
	case now.After(current.client.Leaf.NotAfter):
		return "the client certificate has expired"
	}
	return ""
}
