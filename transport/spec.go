// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"strconv"
	"time"
)

// TargetSpec says where a webhook is served and how to reach it there. It is
// plain data: secrets and certificates are PEM bytes that somebody else read.
type TargetSpec struct {
	URL        string // https URL with host, explicit or default port, path; no query, fragment, userinfo
	ServerName string // empty: the URL's host
	CABundle   []byte // PEM; empty: the system's trust roots

	ClientCertificate, ClientKey []byte // PEM; empty: none
	BearerToken                  string // empty: none

	// Endpoints, if any, are dialled instead of the URL's host.
	Endpoints []EndpointSpec

	Breaker BreakerSpec
}

// BreakerSpec is how the breakers of a Target's Endpoints are set. Zero values
// mean the defaults of package breaker.
type BreakerSpec struct {
	Off          bool          // no breaker at all
	FailureRatio float64       // of the attempts in 10 s, that opens it
	MinRequests  int           // in 10 s, below which the ratio says nothing
	OpenTime     time.Duration // before the first probe
}

// EndpointSpec is one address that serves a Target.
type EndpointSpec struct {
	Address    string // host:port
	ServerName string // empty: the Target's
	CABundle   []byte // PEM; empty: the Target's
}

// Identity names a Target by everything that makes it that Target. Two specs
// with one Identity share connections and health.
type Identity [sha256.Size]byte

// String returns the identity in hex.
func (i Identity) String() string { return hex.EncodeToString(i[:]) }

// Identity returns the spec's identity.
func (s TargetSpec) Identity() Identity {
	h := sha256.New()
	field := func(b []byte) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(b)))
		h.Write(size[:])
		h.Write(b)
	}
	for _, b := range [][]byte{[]byte(s.URL), []byte(s.ServerName), s.CABundle, s.ClientCertificate, s.ClientKey, []byte(s.BearerToken)} {
		field(b)
	}
	for _, e := range s.Endpoints {
		field([]byte(e.Address))
		field([]byte(e.ServerName))
		field(e.CABundle)
	}
	field(fmt.Append(nil, s.Breaker))
	return Identity(h.Sum(nil))
}

// origin is one host and port of a Target with the way to trust it. Its host
// gives one Endpoint per address.
type origin struct {
	host string
	port uint16
	tls  *tls.Config // frozen
}

func newOrigin(spec *TargetSpec, e *EndpointSpec, urlHost string) (origin, error) {
	host, portText, err := net.SplitHostPort(e.Address)
	if err != nil {
		return origin{}, fmt.Errorf("endpoint %q: %w", e.Address, err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil || port == 0 || host == "" {
		return origin{}, fmt.Errorf("endpoint %q: want host:port", e.Address)
	}
	cfg, err := newTLSConfig(spec, e, urlHost)
	if err != nil {
		return origin{}, fmt.Errorf("endpoint %q: %w", e.Address, err)
	}
	return origin{host: host, port: uint16(port), tls: cfg}, nil
}

// newTLSConfig says whom to trust as the endpoint, and who we are to it.
func newTLSConfig(spec *TargetSpec, e *EndpointSpec, urlHost string) (*tls.Config, error) {
	cfg := &tls.Config{
		MinVersion:                  tls.VersionTLS12,
		NextProtos:                  []string{"http/1.1"},
		ServerName:                  firstOf(e.ServerName, spec.ServerName, urlHost),
		ClientSessionCache:          tls.NewLRUClientSessionCache(0),
		DynamicRecordSizingDisabled: true,
	}
	bundle := e.CABundle
	if len(bundle) == 0 {
		bundle = spec.CABundle
	}
	if len(bundle) > 0 {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(bundle) {
			return nil, errors.New("the CA bundle has no certificate")
		}
	}
	if len(spec.ClientCertificate) > 0 {
		certificate, err := tls.X509KeyPair(spec.ClientCertificate, spec.ClientKey)
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		cfg.Certificates = []tls.Certificate{certificate}
	}
	return cfg, nil
}

func firstOf(names ...string) string {
	for _, name := range names {
		if name != "" {
			return name
		}
	}
	return ""
}

// PathOf returns the path that kube-apiserver calls for u: client-go joins the
// elements of the decoded path, so that no slash is doubled or at the end, no dots
// are left, and %2F is a slash.
func PathOf(u *url.URL) string {
	return (&url.URL{Path: path.Join("/", u.Path)}).EscapedPath()
}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return "443"
}
