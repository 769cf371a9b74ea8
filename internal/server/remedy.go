// SPDX-License-Identifier: Apache-2.0

package server

import (
	"log/slog"
	"strings"
)

// remedy returns what to do about refusals of a kind; "": the reason says it.
func (r refusal) remedy() string {
	switch r {
	case forbidden:
		return "compare the certificate or token of the caller with spec.authentication of its Cluster; dispatcher registration --caller prints what kube-apiserver needs"
	case otherGroup:
		return "add the API group to apiGroups of the caller in spec.authentication.callers of its Cluster"
	case noRoute, notPost, longURI:
		return "apply what dispatcher registration prints for the cluster: the URL is not one of its"
	case tooLarge:
		return "raise limits.requestBytes, or spec.limits.requestBytes of the Cluster"
	case tooSlow, cutShort:
		return "look at the network between the caller and the dispatcher; timeouts.body is how long a body may take"
	case notReady:
		return "send traffic only once /readyz says so; /readyz says what is missing"
	case crowded, noMemory:
		return "raise limits.connections or limits.bodyBytes, or add replicas"
	case badTimeout, badEncoding, notReview, noLength, wrongType, wrongEncoding, unknownExpect, longHeaders:
		return "something that is no kube-apiserver calls, or a proxy changes what one sends"
	}
	return ""
}

// handshakeRemedies are what to do about TLS handshakes that failed, by a part of the
// error's text: crypto/tls has no types for most of them. The first that fits counts.
var handshakeRemedies = [...]struct{ part, remedy string }{
	{"didn't provide a certificate", "have the caller present a client certificate (dispatcher registration --caller), or set tls.clientAuth: IfGiven where clusters use tokens or nothing"},
	{"remote error: tls: unknown certificate authority", distrust}, // alert 48
	{"remote error: tls: bad certificate", distrust},
	{"remote error", "look at the caller's log: it ended the handshake"},
	{"does not look like a TLS handshake", "the caller speaks plain HTTP: its URL must begin with https"},
	{"expired", "renew the client certificate, or correct the clock"},
	{"certificate", "the client certificate is not of an authority in tls.clientCAFile, or in caFile of its Cluster"},
	{"timeout", "look at the network between the caller and the dispatcher"},
}

const distrust = "the caller does not trust the serving certificate: apply what dispatcher registration prints, and check registration.caFile and the names in tls.certFile"

// handshakeRemedy returns what to do about a handshake that failed; "": nothing is known.
func handshakeRemedy(err error) string {
	text := err.Error()
	for _, r := range handshakeRemedies {
		if strings.Contains(text, r.part) {
			return r.remedy
		}
	}
	return ""
}

// remedied adds what to do, where that is known.
func remedied(attrs []slog.Attr, remedy string) []slog.Attr {
	if remedy == "" {
		return attrs
	}
	return append(attrs, slog.String("remedy", remedy))
}
