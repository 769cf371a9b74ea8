// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WebhookBindingObject is a WebhookBinding of group dispatcher.dev/v1alpha1 as
// it stands in a manifest: how the webhooks that it names are dispatched in the
// clusters that it selects. Bindings compose: several may set different fields
// for one webhook and cluster. Two that set one field differently are refused.
type WebhookBindingObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec WebhookBindingSpec `json:"spec"`
}

// WebhookBindingSpec is the spec of a WebhookBinding. A field that is not set
// says nothing; it does not reset what another binding says.
type WebhookBindingSpec struct {
	// Webhooks are globs on configuration/webhook, such as "policies/*". A
	// webhook of any of them is bound. Required.
	Webhooks []string `json:"webhooks"`
	// ClusterSelector selects Clusters by their labels. Default: all.
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// OnlySelectedClusters keeps the webhooks away from clusters that no binding
	// with this field selects. Default: false, webhooks serve every cluster.
	// Danger: where the webhook no longer serves, its policy does not hold.
	OnlySelectedClusters bool `json:"onlySelectedClusters,omitempty"`

	// Mode is Enforce, Warn or Shadow. Default: Enforce. Danger: Warn and Shadow
	// let through what the webhook denies.
	Mode string `json:"mode,omitempty"`
	// Timeout of one call, a duration such as 250ms, from 1ms up to the
	// webhook's own timeoutSeconds. Default: the webhook's own. Danger: too
	// short a timeout turns slow answers into failures.
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// Endpoints are dialled instead of the host of the webhook's URL or Service.
	// Default: the addresses that DNS gives. Danger: all of them must serve the
	// same policy.
	Endpoints []Endpoint `json:"endpoints,omitempty"`
	// ClientCertificate is presented to the webhook. Default: none.
	ClientCertificate *ClientCertificate `json:"clientCertificate,omitempty"`
	// BearerTokenFile holds a token that is sent to the webhook in the
	// Authorization header. Default: none. Danger: whoever serves the webhook
	// learns it.
	BearerTokenFile string `json:"bearerTokenFile,omitempty"`
	// Stage is Validating or Transactional, for validating webhooks. Default:
	// Validating. Transactional webhooks are called after all others and only
	// if everything else allowed. Danger: their time comes on top.
	Stage string `json:"stage,omitempty"`
	// Order moves webhooks within their phase: lower is first. Default: 0; equal
	// numbers stand in the order of configuration names and of their lists.
	// Danger: a mutating webhook sees what those before it made of the object.
	Order *int32 `json:"order,omitempty"`
	// FailurePolicy is Retry: every failed call is repeated within its timeout and
	// the budget of extra attempts, and then counts as Fail. Default: the
	// webhook's own. For webhooks with sideEffects: None only. Danger: an Ignore
	// webhook fails closed from then on.
	FailurePolicy string `json:"failurePolicy,omitempty"`
	// Hedge is Auto, On or Off: whether an unusually slow call is asked a second
	// time, at another endpoint if there is one; the first verdict counts.
	// Default: Auto, wherever there are no side effects, on dry runs also under
	// NoneOnDryRun. On is refused but for webhooks with sideEffects: None.
	Hedge string `json:"hedge,omitempty"`
	// DenyWins lets an allow wait up to 100ms for a hedge that is still under way,
	// and a denial of either win. Default: false. Danger: hides endpoints that
	// serve different policies; the counter of disagreements shows them.
	DenyWins *bool `json:"denyWins,omitempty"`
	// Breaker sets when an endpoint that fails is spared, and for how long.
	Breaker *Breaker `json:"breaker,omitempty"`
	// Probe is Connect, Review or Skip: whether a webhook whose address has changed
	// keeps its previous version until one of the new endpoints accepts a TLS
	// connection, or also answers a dry-run review, with whatever verdict. Default:
	// Connect. Review is refused for webhooks with side effects. Danger: with Skip
	// the failure policy decides until one does.
	Probe string `json:"probe,omitempty"`
	// Join is Enforce or WhenReady: when a webhook that is new takes part. Default:
	// Enforce, at once, as in kube-apiserver: its failure policy decides until it
	// answers. With WhenReady it joins when it has answered its probe. Danger: until
	// then WhenReady lets through, with a warning each, what the webhook would deny.
	Join string `json:"join,omitempty"`
	// Encoding is Auto, JSON, Protobuf or ProtobufNative: how reviews are written
	// for the webhook. Default: that of the process. Auto is JSON until the
	// webhook says in an answer that it reads protobuf. Danger: a webhook that is
	// sent what it does not read fails, or denies, each request.
	Encoding string `json:"encoding,omitempty"`
	// Compression is Off, Auto, Gzip or Zstd: whether reviews of 14 KB and more
	// are compressed. Default: Off. Auto does what the webhook says in an answer
	// that it reads. Danger: within one data centre it costs more time than it
	// saves.
	Compression string `json:"compression,omitempty"`
	// Compatibility is Strict or APIServer. Default: Strict. Danger: APIServer
	// reads ambiguous answers as kube-apiserver does, so a denial can get lost.
	Compatibility string `json:"compatibility,omitempty"`
}

// files returns the names of files that the binding names; "" names none.
func (s *WebhookBindingSpec) files() []string {
	names := []string{s.BearerTokenFile}
	for _, e := range s.Endpoints {
		names = append(names, e.CAFile)
	}
	if c := s.ClientCertificate; c != nil {
		names = append(names, c.CertFile, c.KeyFile)
	}
	return names
}

// Endpoint is one address that serves the bound webhooks.
type Endpoint struct {
	// Address is host:port. Required.
	Address string `json:"address"`
	// CAFile holds the PEM certificates that the endpoint's certificate is
	// verified against. Default: the webhook's caBundle, or else the system's
	// trust roots.
	CAFile string `json:"caFile,omitempty"`
	// ServerName is the name that the endpoint's certificate must have. Default:
	// the host of the webhook's URL or Service.
	ServerName string `json:"serverName,omitempty"`
}

// Breaker is the settings of circuit breakers, one for each endpoint.
type Breaker struct {
	// Enabled: false never spares an endpoint. Default: true. Danger: each caller
	// waits for an endpoint that is down.
	Enabled *bool `json:"enabled,omitempty"`
	// FailurePercent of the attempts in 10 s that opens it, 1 to 100. Default: 50.
	FailurePercent *int32 `json:"failurePercent,omitempty"`
	// MinRequests is the number of attempts in 10 s below which their share of
	// failures says nothing. Default: 10. Three refused connections in a row open
	// it all the same.
	MinRequests *int32 `json:"minRequests,omitempty"`
	// OpenTime is a duration such as 5s, from 100ms to 60s: how long the endpoint
	// is spared before it is tried again, twice as long after each failed try.
	// Default: 5s.
	OpenTime *metav1.Duration `json:"openTime,omitempty"`
}

// ClientCertificate is a key pair in two PEM files.
type ClientCertificate struct {
	// CertFile holds the certificate, followed by its chain. Required.
	CertFile string `json:"certFile"`
	// KeyFile holds the private key, unencrypted. Required.
	KeyFile string `json:"keyFile"`
}
