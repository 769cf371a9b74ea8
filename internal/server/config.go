// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/trust"
	"github.com/admission-dispatcher/dispatcher/registry"
)

// Config is the configuration of a Server. Zero values mean the defaults.
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
	BodyLimit int          // bytes of a request body, also after decompression; 36 MiB
	// BodyBytes limits the bytes of all bodies that are being read, decompressed and
	// held; 512 MiB.
	BodyBytes  int64
	Decompress bool // accept Content-Encoding gzip and zstd
	// Connections limits open connections; 4096.
	Connections int
	// ConnectionAge is how old a connection may be, plus or minus a half, before
	// it is closed with its next answer; 0: as old as it likes.
	ConnectionAge time.Duration
	HeaderTimeout time.Duration // TLS handshake, and request headers; 5 s each
	BodyTimeout   time.Duration // request body; 5 s
	WriteTimeout  time.Duration // one write to a caller that does not read; 10 s
	IdleTimeout   time.Duration // between two requests; 120 s, above the 90 s of kube-apiserver
	// DefaultTimeout is for a caller that sends no ?timeout=; 10 s. MaxTimeout
	// is the longest that an admission may take; 30 s.
	DefaultTimeout, MaxTimeout time.Duration
}

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
	c.BodyLimit = cmp.Or(c.BodyLimit, 36<<20)
	c.BodyBytes = cmp.Or(c.BodyBytes, 512<<20)
	c.Connections = cmp.Or(c.Connections, 4096)
	c.HeaderTimeout = cmp.Or(c.HeaderTimeout, 5*time.Second)
	c.BodyTimeout = cmp.Or(c.BodyTimeout, 5*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 10*time.Second)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, 120*time.Second)
	c.DefaultTimeout = cmp.Or(c.DefaultTimeout, 10*time.Second)
	c.MaxTimeout = cmp.Or(c.MaxTimeout, 30*time.Second)
	return c
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
