// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
)

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
