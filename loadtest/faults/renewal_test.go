// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

// renewal has every certificate between callers, the dispatcher and the hurt webhooks
// replaced by one of a new authority while they are used: first those who verify
// trust both authorities, then the certificate changes, then the old authority goes.
// Both sides that are not the dispatcher note which certificates they see.
type renewal struct {
	w *world

	mu      sync.Mutex
	serving []authority                // that callers trust
	ours    []authority                // of the dispatcher's own certificates, that webhooks trust
	callers map[string]tls.Certificate // by cluster
	hurt    tls.Certificate            // of the hurt webhooks
	stale   tls.Certificate            // that stalest shows instead; none: it shows the same
	seen    map[string]bool            // names of authorities whose certificates were accepted
}

// stalest is the Endpoint that still shows a certificate of the old authority when it is
// gone. Calls that it loses are made at the other one.
const stalest = "hurt-1"

// authority is one with its name.
type authority struct {
	*pki.Authority
	name string
}

// renewable begins a renewal with the world's one authority for everything.
func renewable(w *world) {
	first := []authority{{w.authority, "faults"}}
	r := &renewal{w: w, serving: first, ours: first, callers: map[string]tls.Certificate{}, seen: map[string]bool{}}
	for i := range w.clusters {
		c := &w.clusters[i]
		r.callers[c.Name] = c.TLS.Certificates[0]
		c.TLS = r.caller(func() tls.Certificate { return r.callers[c.Name] })
	}
	r.hurt = w.issued(first[0], "hurt")
	w.renewal.Store(r)
}

// caller is the TLS configuration of somebody who presents a certificate, which is
// asked for with the lock held, and trusts what callers trust now.
func (r *renewal) caller(present func() tls.Certificate) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: "127.0.0.1",
		InsecureSkipVerify: true, // VerifyConnection does, by the authorities of now
		VerifyConnection: func(s tls.ConnectionState) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.verify(s.PeerCertificates, r.serving, x509.ExtKeyUsageServerAuth)
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			c := present()
			return &c, nil
		},
	}
}

// webhook is the TLS configuration of the next connection to an Endpoint of the
// webhooks. A client that gets as far as to be verified has accepted the webhook's own
// certificate.
func (r *renewal) webhook(endpoint string) *tls.Config {
	r.mu.Lock()
	defer r.mu.Unlock()
	certificate := r.hurt
	if endpoint == stalest && r.stale.Leaf != nil {
		certificate = r.stale
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAnyClientCert,
		SessionTicketsDisabled: true, // a session that is resumed shows no certificate
		VerifyConnection: func(s tls.ConnectionState) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.seen[certificate.Leaf.Issuer.CommonName] = true
			return r.verify(s.PeerCertificates, r.ours, x509.ExtKeyUsageClientAuth)
		},
	}
}

// verify notes whose certificate it is, if one of the authorities has signed it. It
// is called with the lock held.
func (r *renewal) verify(chain []*x509.Certificate, trusted []authority, usage x509.ExtKeyUsage) error {
	pool := x509.NewCertPool()
	for _, a := range trusted {
		pool.AppendCertsFromPEM(a.PEM)
	}
	if _, err := chain[0].Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
		return err
	}
	r.seen[chain[0].Issuer.CommonName] = true
	return nil
}

// saw reports whether a certificate of the authority was accepted.
func (r *renewal) saw(authority string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[authority]
}

// accepts reports whether the dispatcher answers whoever presents the certificate, and
// notes whose it is.
func (r *renewal) accepts(certificate tls.Certificate) bool {
	if !r.answers(certificate) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[certificate.Leaf.Issuer.CommonName] = true
	return true
}

func (r *renewal) answers(certificate tls.Certificate) bool {
	raw, err := net.DialTimeout("tcp", r.w.front.Addr(), longest)
	if err != nil {
		return false
	}
	conn := tls.Client(raw, r.caller(func() tls.Certificate { return certificate }))
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(longest))
	// With TLS 1.3 a certificate is refused after the client's part of the handshake.
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: dispatcher\r\nConnection: close\r\n\r\n"); err != nil {
		return false
	}
	n, _ := conn.Read(make([]byte, 1))
	return n > 0
}

// renewals replaces n certificates, four at a time: the serving certificate, those of
// callers, those of webhooks, and the one that the dispatcher presents to webhooks,
// each with its authority.
func renewals(n int) func(*record, *world) {
	const roles = 4
	return func(rec *record, w *world) {
		var last [roles]authority
		for i := range last {
			last[i] = authority{w.authority, "faults"}
		}
		for round := 1; round <= n/roles && len(rec.failures) == 0; round++ {
			var next [roles]authority
			for i, role := range []string{"serving", "callers", "webhooks", "ours"} {
				name := fmt.Sprintf("%s-%d", role, round)
				a, err := pki.NewAuthority(name)
				w.must(err)
				next[i] = authority{a, name}
			}
			w.renewal.Load().round(rec, last, next)
			last = next
		}
		if len(rec.failures) == 0 {
			progress("F29  %d certificates and authorities were replaced", n/roles*roles)
		}
	}
}

// The places of authorities.
const (
	ofServing = iota
	ofCallers
	ofWebhooks
	ofOurs
)

// round replaces the authorities and certificates of last by those of next.
func (r *renewal) round(rec *record, last, next [4]authority) {
	w := r.w
	const settled = 50 * time.Millisecond // handshakes that are under way
	inUse := func(what string, ok func() bool) {
		if !eventually(ok) {
			rec.errorf("%s: not in use %v after it was there", what, longest)
		}
	}
	loads := func() float64 {
		return w.metric(w.servers[0], "dispatcher_config_reloads_total", `result="success"`)
	}
	cluster := w.clusters[0].Name
	old, stale := r.callers[cluster], r.hurt

	// Who verifies trusts both.
	before := loads()
	bundle := func(file string, authorities ...authority) {
		var pem []byte
		for _, a := range authorities {
			pem = append(pem, a.PEM...)
		}
		w.write(file, pem)
	}
	r.trust([]authority{last[ofServing], next[ofServing]}, []authority{last[ofOurs], next[ofOurs]})
	bundle("callers.crt", last[ofCallers], next[ofCallers])
	bundle("webhooks.crt", last[ofWebhooks], next[ofWebhooks])
	inUse("the authority of callers", func() bool { return r.accepts(w.issued(next[ofCallers], cluster)) })
	inUse("the configuration with the authority of webhooks", func() bool { return loads() > before })
	if len(rec.failures) > 0 {
		return
	}

	// Certificates change.
	pass(settled)
	r.present(next[ofCallers], next[ofWebhooks])
	for _, e := range w.hurt {
		e.CloseIdle()
	}
	w.issueBy(next[ofServing], "serving", "dispatcher")
	w.issueBy(next[ofOurs], "client", "dispatcher")
	inUse("the certificate of the dispatcher", func() bool {
		return r.accepts(w.issued(next[ofCallers], cluster)) && r.saw(next[ofServing].name)
	})
	inUse("the authority of webhooks", func() bool { return r.saw(next[ofWebhooks].name) })
	inUse("the certificate for webhooks", func() bool { return r.saw(next[ofOurs].name) })
	if len(rec.failures) > 0 {
		return
	}

	// The old authorities go.
	pass(settled)
	before = loads()
	r.trust(next[ofServing:][:1], next[ofOurs:])
	bundle("callers.crt", next[ofCallers])
	bundle("webhooks.crt", next[ofWebhooks])
	inUse("the callers' file without the old authority", func() bool { return !r.accepts(old) })
	inUse("the configuration without the old authority of webhooks", func() bool { return loads() > before })
	if len(rec.failures) > 0 {
		return
	}
	r.show(stale)
	defer r.show(tls.Certificate{})
	opened := func() float64 {
		return w.metric(w.servers[0], "dispatcher_breaker_transitions_total", `circuit="endpoint"`, `state="open"`)
	}
	before = opened()
	inUse("the authorities of webhooks without the old one", func() bool {
		w.hurt[1].CloseIdle()
		return opened() > before // of the Endpoint, which nobody gets a connection to
	})
}

// show has an Endpoint show the certificate from now on, or none of its own.
func (r *renewal) show(stale tls.Certificate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stale = stale
}

// trust sets whom callers and webhooks trust from now on.
func (r *renewal) trust(serving, ours []authority) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serving, r.ours = slices.Clone(serving), slices.Clone(ours)
}

// present gives callers and the hurt webhooks certificates of those authorities.
func (r *renewal) present(callers, webhooks authority) {
	hurt := r.w.issued(webhooks, "hurt")
	fresh := map[string]tls.Certificate{}
	for _, c := range r.w.clusters {
		fresh[c.Name] = r.w.issued(callers, c.Name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.callers, r.hurt = fresh, hurt
}

// renewed: each side has accepted a certificate of each authority. That it takes none of
// the one before any more was seen in each round.
func renewed(n int) func(*findings, *world, *record) {
	return func(t *findings, w *world, _ *record) {
		r := w.renewal.Load()
		for _, role := range []string{"serving", "callers", "webhooks", "ours"} {
			for round := range n / 4 {
				if last := fmt.Sprintf("%s-%d", role, round+1); !r.saw(last) {
					t.Errorf("no certificate of %s was accepted", last)
				}
			}
		}
	}
}
