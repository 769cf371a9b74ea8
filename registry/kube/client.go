// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/admission-dispatcher/dispatcher/registry"
)

const (
	// dialTimeout is short, because a cluster that is gone holds a place among the
	// lists meanwhile.
	dialTimeout = 3 * time.Second
	// headerTimeout bounds how long a watch may take to begin: API servers begin at
	// once.
	headerTimeout = 30 * time.Second
	// After pingAfter without a byte the connection is pinged, and it is dead if
	// nothing comes within pingTimeout: a watch says nothing for hours.
	pingAfter   = 20 * time.Second
	pingTimeout = 10 * time.Second
	idleTimeout = 90 * time.Second
)

// newClient returns a client of its own for each access. The one of client-go
// would come from a cache that never forgets.
func newClient(a registry.KubeAccess) (*http.Client, metadata.Getter, error) {
	cfg, err := tlsConfig(a)
	if err != nil {
		return nil, nil, err
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: pingAfter}
	client := &http.Client{
		Transport: authorized{token: a.Token, next: &http.Transport{
			DialContext:           dialer.DialContext,
			TLSClientConfig:       cfg,
			TLSHandshakeTimeout:   dialTimeout,
			ResponseHeaderTimeout: headerTimeout,
			IdleConnTimeout:       idleTimeout,
			DisableCompression:    true,
			ForceAttemptHTTP2:     true,
			HTTP2:                 &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		}},
		// A redirect would take the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	api, err := metadata.NewForConfigAndClient(&rest.Config{
		Host:      a.Server,
		UserAgent: "admission-dispatcher",
		QPS:       -1, // lists and live GETs have bounds of their own
	}, client)
	if err != nil {
		return nil, nil, err
	}
	return client, api.Resource(namespacesResource()), nil
}

func namespacesResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
}

func tlsConfig(a registry.KubeAccess) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: a.ServerName}
	if a.CA != "" {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM([]byte(a.CA)) {
			return nil, errors.New("certificate-authority holds no PEM certificate")
		}
	}
	if a.Certificate != "" {
		pair, err := tls.X509KeyPair([]byte(a.Certificate), []byte(a.Key))
		if err != nil {
			return nil, err
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// authorized adds the token, if there is one, to each request.
type authorized struct {
	token string
	next  *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (t authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+t.token)
	}
	return t.next.RoundTrip(r)
}

// CloseIdleConnections lets http.Client reach the transport.
func (t authorized) CloseIdleConnections() { t.next.CloseIdleConnections() }
