// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/config"
)

// certificates is the TLS side of the admission listener, read again when its
// files change. While they do not fit together the last good ones stay.
type certificates struct {
	files config.TLS
	log   *slog.Logger
	kick  chan struct{}

	current  atomic.Pointer[tls.Config]
	expiries atomic.Pointer[map[string]time.Time] // by role

	// Of the goroutine of run alone:
	seen    [sha256.Size]byte // sum of the last good input
	refused string            // why the last input is refused, or ""
}

// newCertificates reads the files. They must be good at the start.
func newCertificates(files config.TLS, log *slog.Logger) (*certificates, error) {
	c := &certificates{files: files, log: log, kick: make(chan struct{}, 1)}
	in, err := readCredentials(files)
	if err != nil {
		return nil, err
	}
	cfg, err := in.compile(files)
	if err != nil {
		return nil, err
	}
	c.seen = in.sum()
	c.use(cfg, in)
	return c, nil
}

// config returns the configuration to listen with: each connection gets the
// current one.
func (c *certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return c.current.Load(), nil
		},
	}
}

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
	in, err := readCredentials(c.files)
	if err != nil {
		c.refuse(err)
		return
	}
	sum := in.sum()
	if sum == c.seen && c.refused == "" {
		return
	}
	cfg, err := in.compile(c.files)
	if err != nil {
		c.refuse(err)
		return
	}
	c.seen, c.refused = sum, ""
	c.use(cfg, in)
	c.log.Info("certificates loaded", "certFile", c.files.CertFile, "notAfter", cfg.Certificates[0].Leaf.NotAfter)
}

// use makes cfg, which was compiled from in, current.
func (c *certificates) use(cfg *tls.Config, in credentials) {
	expiries := map[string]time.Time{"serving": cfg.Certificates[0].Leaf.NotAfter}
	authorities, _ := parseCertificates(in.clientCAs) // compile has seen that it is good
	for _, ca := range authorities {
		if first, ok := expiries["client_ca"]; !ok || ca.NotAfter.Before(first) {
			expiries["client_ca"] = ca.NotAfter
		}
	}
	c.expiries.Store(&expiries)
	c.current.Store(cfg)
}

// refuse keeps the last good certificates and says why, once.
func (c *certificates) refuse(err error) {
	if why := err.Error(); why != c.refused {
		c.refused = why
		c.log.Error("certificates refused; the last good ones stay", "error", why)
	}
}
