// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/config"
)

// certificates is the admission listener's TLS configuration, read again when
// its files change. If they are not whole the last good one stays.
type certificates struct {
	files config.TLS
	log   *slog.Logger
	kick  chan struct{}

	current atomic.Pointer[tls.Config]
	seen    [sha256.Size]byte // of the files' content, good or bad
}

// newCertificates reads the files. They must be good at the start.
func newCertificates(files config.TLS, log *slog.Logger) (*certificates, error) {
	c := &certificates{files: files, log: log, kick: make(chan struct{}, 1)}
	content, err := c.read()
	if err != nil {
		return nil, err
	}
	cfg, err := content.compile(files)
	if err != nil {
		return nil, err
	}
	c.seen = content.sum()
	c.current.Store(cfg)
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
	default: // one is under way
	}
}

func (c *certificates) refresh() {
	content, err := c.read()
	if err == nil && content.sum() == c.seen {
		return
	}
	var cfg *tls.Config
	if err == nil {
		c.seen = content.sum()
		cfg, err = content.compile(c.files)
	}
	if err != nil {
		c.log.Error("certificates refused; the last good ones stay", "error", err.Error())
		return
	}
	c.current.Store(cfg)
	c.log.Info("certificates loaded", "certFile", c.files.CertFile)
}

// content is what the files hold.
type content struct{ cert, key, ca []byte }

func (c *certificates) read() (content, error) {
	var got content
	for _, f := range []struct {
		field, path string
		into        *[]byte
	}{{"tls.certFile", c.files.CertFile, &got.cert}, {"tls.keyFile", c.files.KeyFile, &got.key}, {"tls.clientCAFile", c.files.ClientCAFile, &got.ca}} {
		if f.path == "" {
			continue
		}
		data, err := os.ReadFile(f.path)
		if err != nil {
			return content{}, fmt.Errorf("%s: %w", f.field, err)
		}
		*f.into = data
	}
	return got, nil
}

func (c content) sum() [sha256.Size]byte {
	return sha256.Sum256(bytes.Join([][]byte{c.cert, c.key, c.ca}, []byte{0}))
}

func (c content) compile(files config.TLS) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("tls.certFile %s with tls.keyFile %s: %w", files.CertFile, files.KeyFile, err)
	}
	cfg := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair},
		ClientAuth:   tls.NoClientCert,
	}
	if files.ClientCAFile == "" {
		return cfg, nil
	}
	cfg.ClientCAs = x509.NewCertPool()
	if !cfg.ClientCAs.AppendCertsFromPEM(c.ca) {
		return nil, fmt.Errorf("tls.clientCAFile %s has no certificate", files.ClientCAFile)
	}
	cfg.ClientAuth = tls.RequireAndVerifyClientCert
	if files.ClientAuth == config.IfGiven {
		cfg.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return cfg, nil
}
