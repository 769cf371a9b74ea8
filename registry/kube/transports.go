// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"
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

	// maxHeaders bounds the headers of an answer, in bytes.
	maxHeaders = 64 << 10
)

// transports is the connections of one client. A renewed certificate has new ones:
// a connection is who its certificate says, for as long as it lasts.
type transports struct {
	trust   *tls.Config
	allowed func(netip.AddrPort) error // nil: any address

	mu          sync.Mutex
	certificate *tls.Certificate
	current     *http.Transport
}

// of returns the connections that present the certificate. The ones before finish
// what is under way.
func (t *transports) of(certificate *tls.Certificate) *http.Transport {
	t.mu.Lock()
	before := t.current
	if before == nil || t.certificate != certificate {
		t.certificate, t.current = certificate, t.transport(certificate)
	}
	current := t.current
	t.mu.Unlock()
	if before != nil && before != current {
		before.CloseIdleConnections() // may block: each says goodbye
	}
	return current
}

func (t *transports) close() {
	t.mu.Lock()
	current := t.current
	t.mu.Unlock()
	if current != nil {
		current.CloseIdleConnections()
	}
}

func (t *transports) transport(certificate *tls.Certificate) *http.Transport {
	cfg := t.trust.Clone()
	if certificate != nil {
		cfg.Certificates = []tls.Certificate{*certificate}
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: pingAfter, Control: t.control}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        cfg,
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		MaxResponseHeaderBytes: maxHeaders,
		IdleConnTimeout:        idleTimeout,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
}

// control judges the address that is dialled, whatever a name led to (E2).
func (t *transports) control(_, address string, _ syscall.RawConn) error {
	if t.allowed == nil {
		return nil
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return t.allowed(at)
}
