// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/internal/status"
	"github.com/admission-dispatcher/dispatcher/internal/trust"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// certificates is the TLS side of a listener, read again when its files change.
// While they do not fit together the last good ones stay.
type certificates struct {
	listener listener
	files    config.TLS
	log      *slog.Logger
	kick     chan struct{}

	current atomic.Pointer[identity]
	refused atomic.Pointer[string] // why the last input is refused; nil: it is not

	seen [sha256.Size]byte // sum of the last good input; of the goroutine of run alone
}

// newCertificates reads the files. They must be good at the start.
func newCertificates(listener listener, files config.TLS, log *slog.Logger) (*certificates, error) {
	c := &certificates{listener: listener, files: files, log: log, kick: make(chan struct{}, 1)}
	in, err := readCredentials(listener, files)
	if err != nil {
		return nil, err
	}
	id, err := in.compile(listener, files)
	if err != nil {
		return nil, err
	}
	c.seen = in.sum()
	c.current.Store(id)
	return c, nil
}

// config returns the configuration to listen with: each connection gets the
// current one.
func (c *certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return c.current.Load().tls, nil
		},
	}
}

// trusted returns the current authorities of clients.
func (c *certificates) trusted() *trust.Authorities { return c.current.Load().trusted }

// run looks at the files at every interval and on reload until ctx is done.
func (c *certificates) run(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-c.kick:
		}
		c.refresh()
	}
}

func (c *certificates) reload() {
	select {
	case c.kick <- struct{}{}:
	default: // one is waiting already
	}
}

func (c *certificates) refresh() {
	in, err := readCredentials(c.listener, c.files)
	if err != nil {
		c.refuse(err)
		return
	}
	sum := in.sum()
	if sum == c.seen && c.refused.Load() == nil {
		return
	}
	id, err := in.compile(c.listener, c.files)
	if err != nil {
		c.refuse(err)
		return
	}
	c.seen = sum
	c.refused.Store(nil)
	c.current.Store(id)
	c.log.Info("certificates loaded", "listener", c.listener.name, "certFile", c.files.CertFile, "notAfter", id.tls.Certificates[0].Leaf.NotAfter)
}

// refuse keeps the last good certificates and says why, once.
func (c *certificates) refuse(err error) {
	why := err.Error()
	if before := c.refused.Swap(&why); before == nil || *before != why {
		c.log.Error("certificates refused; the last good ones stay", "listener", c.listener.name, "error", why)
	}
}

// expiries adds when the first certificate of each role expires, under the roles'
// names in metrics.
func (c *certificates) expiries(first map[string]time.Time) {
	used := c.current.Load()
	first[c.listener.role+"serving"] = used.tls.Certificates[0].Leaf.NotAfter
	for _, ca := range used.authorities {
		earliest(first, c.listener.role+"client_ca", ca.NotAfter)
	}
}

func earliest(first map[string]time.Time, role string, at time.Time) {
	if known, ok := first[role]; !ok || at.Before(known) {
		first[role] = at
	}
}

// expiries returns when the first certificate of each role expires.
func expiries(listeners []*certificates, targets []*transport.Target) map[string]time.Time {
	first := map[string]time.Time{}
	for _, c := range listeners {
		c.expiries(first)
	}
	for _, t := range targets {
		if at := t.CertificateExpiry(); !at.IsZero() {
			earliest(first, "webhook_client", at)
		}
	}
	return first
}

// status returns the serving certificate and the authorities of clients.
func (c *certificates) status() []status.Certificate {
	refused := ""
	if why := c.refused.Load(); why != nil {
		refused = *why
	}
	used := c.current.Load()
	list := []status.Certificate{newCertificateStatus(c.listener.name+" serving", c.files.CertFile, refused, used.tls.Certificates[0].Leaf)}
	for _, ca := range used.authorities {
		list = append(list, newCertificateStatus(c.listener.name+" client authority", c.files.ClientCAFile, "", ca))
	}
	return list
}

func newCertificateStatus(role, file, refused string, c *x509.Certificate) status.Certificate {
	return status.Certificate{
		Role:      role,
		File:      file,
		Subject:   c.Subject.String(),
		NotBefore: c.NotBefore.UTC(),
		NotAfter:  c.NotAfter.UTC(),
		Refused:   refused,
	}
}

// statusOf returns the certificates of listeners as they are used.
func statusOf(listeners []*certificates) (list []status.Certificate) {
	for _, c := range listeners {
		list = append(list, c.status()...)
	}
	return list
}
