// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/server"
	"github.com/admission-dispatcher/dispatcher/internal/trust"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// fasthttp's worker pool looks every ten seconds whether it was stopped.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// patience bounds every wait for something that must happen.
const patience = 20 * time.Second

const token = "a-token-of-the-cluster-token"

// The path secrets of the cluster secret: the one in use and the next; and of another.
const (
	pathSecret  = "5e0c1ca6f5d94a0bb3c1a4e1f0aa2f4b71d26a9c"
	nextSecret  = "z2d8f1b7c0e9a3546b8d7f2c1e0a9b8c7d6e5f40"
	otherSecret = "0f9e8d7c6b5a49382716051423324150a1b2c3d4"
)

// The clusters of the tests: a and b by certificate, token by bearer token,
// open by nothing, small with a limit of its own, secret and other by path secrets, far by
// both and from elsewhere.
const clusters = `
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: a}
spec:
  authentication: {certificate: {commonNames: [a], uris: ["spiffe://example.com/a"]}}
  timeoutSeconds: 10
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: b}
spec: {authentication: {certificate: {dnsNames: [b.example.com]}}}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: token}
spec: {authentication: {bearerTokenSHA256: ["%x"]}}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: open}
spec: {authentication: {anonymous: true}}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: small}
spec:
  authentication: {certificate: {commonNames: [small]}}
  limits: {requestBytes: 2000}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: secret}
spec:
  authentication:
    certificate: {commonNames: [secret]}
    pathSecretSHA256: ["%x", "%x"]
    sourceRanges: [192.0.2.0/24, 127.0.0.0/8]
    callers: [{name: wardle, certificate: {commonNames: [wardle]}, apiGroups: [wardle.example.com]}]
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: other}
spec: {authentication: {pathSecretSHA256: ["%x"]}}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: far}
spec:
  authentication:
    certificate: {commonNames: [far]}
    anonymous: false
    sourceRanges: ["192.0.2.0/24", "fd00::/8"]
`

// world is a running server with the clusters above, and their certificates.
type world struct {
	t        testing.TB
	ca       *pki.Authority
	addr     string
	server   *server.Server
	served   chan error
	judge    *judge
	logs     *logs
	turned   *turned
	snapshot *registry.Snapshot
	trusted  *trust.Authorities
}

// newWorld starts a server. change, if not nil, changes its configuration.
func newWorld(t testing.TB, change func(*server.Config)) *world {
	t.Helper()
	return newWorldOn(t, listen(t), change)
}

// newWorldOn is newWorld with a listener.
func newWorldOn(t testing.TB, ln net.Listener, change func(*server.Config)) *world {
	t.Helper()
	w := &world{t: t, ca: newAuthority(t), judge: &judge{}, logs: &logs{}, turned: &turned{}, snapshot: newSnapshot(t), served: make(chan error, 1)}
	w.trusted = authorities(t, w.ca)
	cfg := w.config()
	if change != nil {
		change(&cfg)
	}
	w.server = server.New(cfg)
	w.addr = ln.Addr().String()
	go func() { w.served <- w.server.Serve(ln) }()
	t.Cleanup(w.stop)
	return w
}

func (w *world) config() server.Config {
	return server.Config{
		TLS:         w.serverTLS(tls.RequireAndVerifyClientCert),
		Authorities: func() *trust.Authorities { return w.trusted },
		Snapshot:    func() *registry.Snapshot { return w.snapshot },
		Decider:     w.judge,
		Logger:      slog.New(slog.NewJSONHandler(w.logs, nil)),
		Observer:    w.turned,
	}
}

func (w *world) stop() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // whatever is still open is cut
	_ = w.server.Shutdown(ctx)
	if err := <-w.served; err != nil {
		w.t.Errorf("Serve: %v", err)
	}
}

func (w *world) serverTLS(auth tls.ClientAuthType) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{w.issue(w.ca, pki.Subject{IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})},
		ClientAuth:   auth,
	}
}

func (w *world) issue(ca *pki.Authority, s pki.Subject) tls.Certificate {
	w.t.Helper()
	pair, err := ca.Issue(s)
	if err != nil {
		w.t.Fatal(err)
	}
	certificate, err := pair.TLS()
	if err != nil {
		w.t.Fatal(err)
	}
	return certificate
}

// clientTLS is what a kube-apiserver with a certificate for s dials with.
func (w *world) clientTLS(s pki.Subject) *tls.Config {
	return &tls.Config{RootCAs: w.ca.Pool(), Certificates: []tls.Certificate{w.issue(w.ca, s)}}
}

func newAuthority(t testing.TB) *pki.Authority {
	t.Helper()
	ca, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// authorities returns those of clients that the CAs are.
func authorities(t testing.TB, cas ...*pki.Authority) *trust.Authorities {
	t.Helper()
	var certificates []*x509.Certificate
	for _, ca := range cas {
		block, _ := pem.Decode(ca.PEM)
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		certificates = append(certificates, c)
	}
	return trust.NewAuthorities(certificates)
}

func newSnapshot(t testing.TB) *registry.Snapshot {
	t.Helper()
	dir := t.TempDir()
	text := fmt.Sprintf(clusters, sum(token), sum(pathSecret), sum(nextSecret), sum(otherSecret))
	if err := os.WriteFile(filepath.Join(dir, "clusters.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := registry.New(registry.Settings{Sources: manifest.Directories(dir)})
	if problems := r.Load(); len(problems) > 0 {
		t.Fatal(problems)
	}
	return r.Snapshot()
}

func sum(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

func listen(t testing.TB) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// judge is a Decider that allows, remembers, and does what the test says.
type judge struct {
	do func(ctx context.Context, req dispatcher.Request) codec.Response

	mu       sync.Mutex
	seen     []decided
	declined []string
}

// decided is one Dispatch.
type decided struct {
	uid, body, cluster string
	phase              chain.Phase
	budget             time.Duration // left at the time of the call
	deadline           time.Time
	path               string
	outdated           bool
}

func (j *judge) Dispatch(ctx context.Context, req dispatcher.Request, v *dispatcher.Verdict) {
	j.mu.Lock()
	path := ""
	if req.Path != nil {
		path = req.Path.Segment
	}
	j.seen = append(j.seen, decided{
		path:     path,
		outdated: req.Outdated,
		uid:      string(req.Review.UID),
		body:     string(req.Review.Body.Bytes()),
		cluster:  req.Cluster.Name,
		phase:    req.Phase,
		budget:   time.Until(req.Deadline),
		deadline: req.Deadline,
	})
	j.mu.Unlock()
	if j.do != nil {
		v.Response = j.do(ctx, req)
		return
	}
	v.Response = codec.Response{Allowed: true}
}

// Decline denies, as a dispatcher does, and remembers it as no decision.
func (j *judge) Decline(ctx context.Context, req dispatcher.Request, defect dispatcher.Defect, v *dispatcher.Verdict) {
	j.mu.Lock()
	defer j.mu.Unlock()
	id := trace.SpanContextFromContext(ctx).TraceID()
	j.declined = append(j.declined, fmt.Sprintf("%s %s %s %s", req.Cluster.Name, req.Review.UID, id, defect.Message))
	v.Response = codec.Response{Code: defect.Code, Message: defect.Message}
}

func (j *judge) decisions() []decided {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]decided(nil), j.seen...)
}

// forget drops what was seen.
func (j *judge) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seen = nil
}

// none fails the test if a request came through.
func (j *judge) none(t *testing.T) {
	t.Helper()
	if seen := j.decisions(); len(seen) > 0 {
		t.Errorf("%d requests came through, the first with uid %q", len(seen), seen[0].uid)
	}
}

// last returns the only or latest decision.
func (j *judge) last(t *testing.T) decided {
	t.Helper()
	seen := j.decisions()
	if len(seen) == 0 {
		t.Fatal("no request came through")
	}
	return seen[len(seen)-1]
}

// turned is an Observer that counts.
type turned struct {
	mu   sync.Mutex
	away map[string]int // by cluster and reason
}

// TurnedAway implements server.Observer.
func (t *turned) TurnedAway(cluster, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.away == nil {
		t.away = map[string]int{}
	}
	t.away[cluster+" "+reason]++
}

func (t *turned) counts() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.away)
}

// logs collects records.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logs) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSuffix(l.buf.String(), "\n"), "\n")
}
