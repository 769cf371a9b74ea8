// SPDX-License-Identifier: Apache-2.0

// Package webhook calls one webhook: it owns the Targets with their Endpoints
// and connection pools and is the only outbound HTTP of the process.
package webhook

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
}

// EndpointSpec is one address that serves a Target.
type EndpointSpec struct {
	Address    string // host:port
	ServerName string // empty: the Target's
	CABundle   []byte // PEM; empty: the Target's
}

// Identity names a Target by everything that makes it that Target. Two specs
// with one Identity share connections and health.
type Identity [32]byte

// Identity returns the spec's identity.
func (s TargetSpec) Identity() Identity { panic("stub") }

// Target is where a webhook is served: the stable identity with an atomically
// replaced list of Endpoints. It is safe for concurrent use.
type Target struct{}

// NewTarget compiles a spec. It starts nothing and dials nothing.
func NewTarget(spec TargetSpec) (*Target, error) { panic("stub") }

// Identity returns the identity of the spec that t was made from.
func (t *Target) Identity() Identity { panic("stub") }

// URL returns the URL of the spec.
func (t *Target) URL() string { panic("stub") }
