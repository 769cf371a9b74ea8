// SPDX-License-Identifier: Apache-2.0

package registry

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
	// Compatibility is Strict or APIServer. Default: Strict. Danger: APIServer
	// reads ambiguous answers as kube-apiserver does, so a denial can get lost.
	Compatibility string `json:"compatibility,omitempty"`
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

// ClientCertificate is a key pair in two PEM files.
type ClientCertificate struct {
	// CertFile holds the certificate, followed by its chain. Required.
	CertFile string `json:"certFile"`
	// KeyFile holds the private key, unencrypted. Required.
	KeyFile string `json:"keyFile"`
}
