// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/trust"
)

// listener accepts TCP connections, limits how many are open, and puts TLS on
// top. The limit stands under TLS: a connection too many is closed without a
// byte, so that nothing a stranger does or omits can hold up accepting.
// Handshakes are made by the goroutines that serve the connections.
type listener struct {
	net.Listener
	cfg      Config
	verifier *trust.Verifier
	records  *records
	slots    *slots
	heads    *heads
	close    func() error
}

func newListener(ln net.Listener, cfg Config, verifier *trust.Verifier, records *records) *listener {
	return &listener{
		Listener: ln,
		cfg:      cfg,
		verifier: verifier,
		records:  records,
		slots:    newSlots(cfg.Connections),
		heads:    newHeads(cfg.Connections),
		close:    sync.OnceValue(ln.Close),
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
		for wait := l.slots.crowded(); wait > 0; wait = l.slots.crowded() {
			time.Sleep(min(wait, minAcceptPause)) // a slot may become free before
		}
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
		c := newConn(raw, l)
		victim := l.slots.enter(c)
		l.evict(victim, tooManyOpen, l.cfg.Connections)
		if victim != c {
			return c, nil
		}
	}
}

// evict closes a connection that makes way, if there is one: there are more than the
// limit of something. It goes at once and without a byte: writing could take as long
// as its caller likes.
func (l *listener) evict(victim *conn, why string, limit int) {
	if victim == nil {
		return
	}
	_ = victim.raw.Close()
	l.records.connectionClosed(victim.owner, victim.RemoteAddr(), why, limit)
}

// verify returns the verified chains of what a client sent, and the name of the
// cluster whose they are and that calls from the peer's address, if any. It holds no Snapshot while it verifies: that may
// wait for others, and the configuration must not wait with it.
func (l *listener) verify(sent []*x509.Certificate, peer netip.Addr) (chains trust.Chains, cluster string, err error) {
	if chains, err = l.verifier.Verify(sent, l.sets(sent[0])); err != nil {
		return trust.Chains{}, "", err
	}
	return chains, l.owner(chains, peer), nil
}

// sets returns the authorities that may vouch for the certificate.
func (l *listener) sets(leaf *x509.Certificate) trust.Sets {
	process := l.cfg.Authorities()
	snapshot := l.cfg.Snapshot()
	if snapshot == nil {
		return trust.Sets{Process: process}
	}
	defer snapshot.Release()
	return snapshot.Authorities(leaf, process)
}

// owner returns the name of the cluster that the chains are of, or "". Connections from
// elsewhere than the cluster's sourceRanges are strangers'.
func (l *listener) owner(chains trust.Chains, peer netip.Addr) string {
	snapshot := l.cfg.Snapshot()
	if snapshot == nil {
		return ""
	}
	defer snapshot.Release()
	name := snapshot.ByCertificate(chains).Cluster
	if cluster := snapshot.Clusters[name]; cluster == nil || !cluster.AcceptsFrom(peer) {
		return ""
	}
	return name
}

// Close stops accepting. Open connections stay open.
func (l *listener) Close() error { return l.close() }

// closeUnused closes the connections on which no request ever began. fasthttp
// closes those that are idle between requests. It would wait 5 s for these, and for
// as long as their handshake may take.
func (l *listener) closeUnused() {
	l.slots.each(func(c *conn) {
		if !c.used.Load() {
			_ = c.raw.Close()
		}
	})
}

// closeAll cuts every connection that is still open.
func (l *listener) closeAll() {
	l.slots.each(func(c *conn) { _ = c.raw.Close() })
}

// hardened returns cfg, and every configuration that it hands out by
// connection, with what we insist on: TLS 1.2, and HTTP/1.1 only, because for
// some URLs kube-apiserver would take HTTP/2. Client certificates are judged by
// verify alone, which crypto/tls turns into an alert. No list of authorities is
// sent: it has 64 KiB at most, and with more every handshake would fail. No
// session is resumed: it would be trusted by the authorities of yesterday.
func hardened(cfg *tls.Config, verify func(tls.ConnectionState) error) *tls.Config {
	cfg = cfg.Clone()
	cfg.MinVersion = max(cfg.MinVersion, tls.VersionTLS12)
	cfg.NextProtos = []string{"http/1.1"}
	cfg.DynamicRecordSizingDisabled = true
	cfg.SessionTicketsDisabled = true
	cfg.VerifyConnection = verify
	cfg.ClientCAs = nil
	switch cfg.ClientAuth {
	case tls.RequireAndVerifyClientCert:
		cfg.ClientAuth = tls.RequireAnyClientCert
	case tls.VerifyClientCertIfGiven:
		cfg.ClientAuth = tls.RequestClientCert
	case tls.NoClientCert, tls.RequestClientCert, tls.RequireAnyClientCert:
	}
	if choose := cfg.GetConfigForClient; choose != nil {
		cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := choose(hello)
			if chosen == nil || err != nil {
				return nil, err
			}
			return hardened(chosen, verify), nil
		}
	}
	return cfg
}
