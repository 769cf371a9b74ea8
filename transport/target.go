// SPDX-License-Identifier: Apache-2.0

// Package transport asks an HTTP server within a deadline, with attempts, hedges,
// retries, breakers and slots. It owns the Targets with their Endpoints and connection
// pools and is the only outbound HTTP of the process.
package transport

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/admission-dispatcher/dispatcher/breaker"
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

// Target is where a webhook is served: the stable identity with an atomically
// replaced list of Endpoints. It is safe for concurrent use.
type Target struct {
	identity Identity
	url      string
	host     string // the URL's, with its port if it has one: the Host header
	head     head
	origins  []origin // what Endpoints come from

	resolving sync.Mutex // held by whoever replaces endpoints
	endpoints atomic.Pointer[[]*Endpoint]
	lastErr   atomic.Pointer[error]
	closed    atomic.Bool

	breaking breaker.Settings
	unspared bool // no breaker is asked
	latency  latency
	kept     sync.Map // what protocols keep
	callers  callers
	stats    stats
}

// NewTarget compiles a spec. It starts nothing and dials nothing; the Target has
// no Endpoints until a Resolver has seen it.
func NewTarget(spec TargetSpec) (*Target, error) {
	u, err := url.Parse(spec.URL)
	if err != nil {
		return nil, fmt.Errorf("parse the webhook's URL: %w", err)
	}
	if u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("%q is not an https URL of host and path alone", u.Redacted())
	}
	t := &Target{identity: spec.Identity(), url: spec.URL, host: u.Host}
	authorize := ""
	if spec.BearerToken != "" {
		authorize = "Bearer " + spec.BearerToken
	}
	if strings.ContainsFunc(authorize, unicode.IsControl) {
		return nil, errors.New("the bearer token has a line break or another control character")
	}
	t.head = newHead(u.Host, PathOf(u), authorize)
	t.unspared = spec.Breaker.Off
	t.breaking = breaker.Settings{
		FailureRatio: spec.Breaker.FailureRatio,
		MinRequests:  spec.Breaker.MinRequests,
		OpenTime:     spec.Breaker.OpenTime,
	}
	endpoints := spec.Endpoints
	if len(endpoints) == 0 {
		endpoints = []EndpointSpec{{Address: net.JoinHostPort(u.Hostname(), portOf(u))}}
	}
	for _, e := range endpoints {
		o, err := newOrigin(&spec, &e, u.Hostname())
		if err != nil {
			return nil, err
		}
		t.origins = append(t.origins, o)
	}
	return t, nil
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

// Identity returns the identity of the spec that t was made from.
func (t *Target) Identity() Identity { return t.identity }

// Host returns the host of the URL, with its port if it has one.
func (t *Target) Host() string { return t.host }

// Keep returns what a protocol keeps with the Target under a key of its own, made by
// fresh if there is nothing.
func (t *Target) Keep(key any, fresh func() any) any {
	kept, ok := t.kept.Load(key)
	if !ok {
		kept, _ = t.kept.LoadOrStore(key, fresh())
	}
	return kept
}

// URL returns the URL of the spec.
func (t *Target) URL() string { return t.url }

// Endpoints returns the current Endpoints. The slice is read-only.
func (t *Target) Endpoints() []*Endpoint {
	if list := t.endpoints.Load(); list != nil {
		return *list
	}
	return nil
}

// CertificateExpiry returns when the client certificate expires; zero: there is
// none.
func (t *Target) CertificateExpiry() time.Time {
	if certificates := t.origins[0].tls.Certificates; len(certificates) > 0 && certificates[0].Leaf != nil {
		return certificates[0].Leaf.NotAfter
	}
	return time.Time{}
}

// Close closes the idle connections of all Endpoints. Calls under way finish;
// their connections are closed when they turn idle.
func (t *Target) Close() {
	t.closed.Store(true)
	for _, e := range t.Endpoints() {
		e.close()
	}
}
