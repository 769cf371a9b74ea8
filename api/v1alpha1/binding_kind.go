// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WebhookBinding says how the webhooks that it names are dispatched in the
// clusters that it selects. Bindings compose: several may set different fields
// for one webhook and cluster. Two that set one field differently are refused.
//
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Webhooks",type=string,JSONPath=`.spec.webhooks`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
type WebhookBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   WebhookBindingSpec `json:"spec"`
	Status Status             `json:"status,omitzero"`
}

// WebhookBindingSpec is the spec of a WebhookBinding. A field that is not set
// says nothing; it does not reset what another binding says.
// +kubebuilder:validation:XValidation:rule="self.webhooks.all(g, g.matches('^[^/]+/[^/]+(/[^/]+)?$'))",message="webhooks must have the form configuration/webhook, or cluster/configuration/webhook; */* is every webhook that is not of one cluster"
// +kubebuilder:validation:XValidation:rule="!has(self.timeout) || duration(self.timeout) >= duration('1ms')",message="timeout must be at least 1ms"
// +kubebuilder:validation:XValidation:rule="!has(self.bearerTokenFile)",message="bearerTokenFile is for manifests in a directory: use bearerTokenSecretRef"
// +kubebuilder:validation:XValidation:rule="!has(self.caFile)",message="caFile is for manifests in a directory: use caSecretRef or caConfigMapRef"
// +kubebuilder:validation:XValidation:rule="!has(self.caSecretRef) || !has(self.caConfigMapRef)",message="caSecretRef and caConfigMapRef exclude each other"
type WebhookBindingSpec struct {
	// Webhooks are globs on configuration/webhook, such as "policies/*", or on
	// cluster/configuration/webhook for configurations of one cluster. A webhook of
	// any of them is bound. Required.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=512
	Webhooks []string `json:"webhooks"`
	// ClusterSelector selects Clusters by their labels. Default: all.
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// OnlySelectedClusters keeps the webhooks away from clusters that no binding
	// with this field selects. Default: false, webhooks serve every cluster.
	// Danger: where the webhook no longer serves, its policy does not hold.
	OnlySelectedClusters bool `json:"onlySelectedClusters,omitempty"`

	// Mode is Enforce, Warn or Shadow. Default: Enforce. Danger: Warn and Shadow
	// let through what the webhook denies.
	// +kubebuilder:validation:Enum="";Enforce;Warn;Shadow
	Mode string `json:"mode,omitempty"`
	// Timeout of one call, a duration such as 250ms, from 1ms up to the
	// webhook's own timeoutSeconds. Default: the webhook's own. Danger: too
	// short a timeout turns slow answers into failures.
	Timeout *Duration `json:"timeout,omitempty"`
	// Endpoints are dialled instead of the host of the webhook's URL or Service.
	// Default: the addresses that DNS gives. Danger: all of them must serve the
	// same policy.
	// +kubebuilder:validation:MaxItems=256
	Endpoints []Endpoint `json:"endpoints,omitempty"`
	// CAFile holds the PEM certificates that the webhooks' certificates are verified
	// against, in place of their caBundle: for addresses that DNS gives, and for
	// Endpoints that name none of their own. Default: the webhook's caBundle, or else
	// the system's trust roots.
	CAFile string `json:"caFile,omitempty"`
	// CASecretRef is a value of a Secret with these certificates, in place of CAFile.
	// Default key: ca.crt.
	CASecretRef *SecretKey `json:"caSecretRef,omitempty"`
	// CAConfigMapRef is the same in a ConfigMap.
	CAConfigMapRef *ConfigMapKey `json:"caConfigMapRef,omitempty"`
	// ClientCertificate is presented to the webhook. Default: none.
	ClientCertificate *ClientCertificate `json:"clientCertificate,omitempty"`
	// BearerTokenFile holds a token that is sent to the webhook in the
	// Authorization header. Default: none. Danger: whoever serves the webhook
	// learns it.
	BearerTokenFile string `json:"bearerTokenFile,omitempty"`
	// BearerTokenSecretRef is a value of a Secret with the token, in place of
	// BearerTokenFile. Default key: token.
	BearerTokenSecretRef *SecretKey `json:"bearerTokenSecretRef,omitempty"`
	// Stage is Validating or Transactional, for validating webhooks. Default:
	// Validating. Transactional webhooks are called after all others and only
	// if everything else allowed. Danger: their time comes on top.
	// +kubebuilder:validation:Enum="";Validating;Transactional
	Stage string `json:"stage,omitempty"`
	// Order moves webhooks within their phase: lower is first. Default: 0; equal
	// numbers stand in the order of configuration names and of their lists.
	// Danger: a mutating webhook sees what those before it made of the object.
	Order *int32 `json:"order,omitempty"`
	// FailurePolicy is Retry: every failed call is repeated within its timeout and
	// the budget of extra attempts, and then counts as Fail. Default: the
	// webhook's own. For webhooks with sideEffects: None only. Danger: an Ignore
	// webhook fails closed from then on.
	// +kubebuilder:validation:Enum="";Retry
	FailurePolicy string `json:"failurePolicy,omitempty"`
	// Hedge is Auto, On or Off: whether an unusually slow call is asked a second
	// time, at another endpoint if there is one; the first verdict counts.
	// Default: Auto, wherever there are no side effects, on dry runs also under
	// NoneOnDryRun. On is refused but for webhooks with sideEffects: None.
	// +kubebuilder:validation:Enum="";Auto;On;Off
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
	// +kubebuilder:validation:Enum="";Connect;Review;Skip
	Probe string `json:"probe,omitempty"`
	// Join is Enforce or WhenReady: when a webhook that is new takes part. Default:
	// Enforce, at once, as in kube-apiserver: its failure policy decides until it
	// answers. With WhenReady it joins when it has answered its probe. Danger: until
	// then WhenReady lets through, with a warning each, what the webhook would deny.
	// +kubebuilder:validation:Enum="";Enforce;WhenReady
	Join string `json:"join,omitempty"`
	// Encoding is Auto, JSON, Protobuf or ProtobufNative: how reviews are written
	// for the webhook. Default: that of the process. Auto is JSON until the
	// webhook says in an answer that it reads protobuf. Danger: a webhook that is
	// sent what it does not read fails, or denies, each request.
	// +kubebuilder:validation:Enum="";Auto;JSON;Protobuf;ProtobufNative
	Encoding string `json:"encoding,omitempty"`
	// Compression is Off, Auto, Gzip or Zstd: whether reviews of 14 KB and more
	// are compressed. Default: Off. Auto does what the webhook says in an answer
	// that it reads. Danger: within one data centre it costs more time than it
	// saves.
	// +kubebuilder:validation:Enum="";Off;Auto;Gzip;Zstd
	Compression string `json:"compression,omitempty"`
	// Compatibility is Strict or APIServer. Default: Strict. Danger: APIServer
	// reads ambiguous answers as kube-apiserver does, so a denial can get lost.
	// +kubebuilder:validation:Enum="";Strict;APIServer
	Compatibility string `json:"compatibility,omitempty"`
}

// WebhookBindingList is a list of WebhookBindings.
//
// +kubebuilder:object:root=true
type WebhookBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []WebhookBinding `json:"items"`
}

// Endpoint is one address that serves the bound webhooks.
// +kubebuilder:validation:XValidation:rule="self.address.matches('^([^:]+|\\\\[.+\\\\]):[0-9]{1,5}$')",message="address must be host:port"
// +kubebuilder:validation:XValidation:rule="!has(self.caFile)",message="caFile is for manifests in a directory: use caSecretRef or caConfigMapRef"
// +kubebuilder:validation:XValidation:rule="!has(self.caSecretRef) || !has(self.caConfigMapRef)",message="caSecretRef and caConfigMapRef exclude each other"
type Endpoint struct {
	// Address is host:port. Required.
	// +kubebuilder:validation:MaxLength=300
	Address string `json:"address"`
	// CAFile holds the PEM certificates that the endpoint's certificate is
	// verified against. Default: the binding's, the webhook's caBundle, or else the
	// system's trust roots.
	CAFile string `json:"caFile,omitempty"`
	// CASecretRef is a value of a Secret with these certificates, in place of CAFile.
	// Default key: ca.crt.
	CASecretRef *SecretKey `json:"caSecretRef,omitempty"`
	// CAConfigMapRef is the same in a ConfigMap.
	CAConfigMapRef *ConfigMapKey `json:"caConfigMapRef,omitempty"`
	// ServerName is the name that the endpoint's certificate must have. Default:
	// the host of the webhook's URL or Service.
	ServerName string `json:"serverName,omitempty"`
}

// Breaker is the settings of circuit breakers, one for each endpoint.
// +kubebuilder:validation:XValidation:rule="!has(self.openTime) || duration(self.openTime) >= duration('100ms') && duration(self.openTime) <= duration('1m')",message="openTime must be between 100ms and 1m"
type Breaker struct {
	// Enabled: false never spares an endpoint. Default: true. Danger: each caller
	// waits for an endpoint that is down.
	Enabled *bool `json:"enabled,omitempty"`
	// FailurePercent of the attempts in 10 s that opens it, 1 to 100. Default: 50.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	FailurePercent *int32 `json:"failurePercent,omitempty"`
	// MinRequests is the number of attempts in 10 s below which their share of
	// failures says nothing. Default: 10. Three refused connections in a row open
	// it all the same.
	// +kubebuilder:validation:Minimum=1
	MinRequests *int32 `json:"minRequests,omitempty"`
	// OpenTime is a duration such as 5s, from 100ms to 60s: how long the endpoint
	// is spared before it is tried again, twice as long after each failed try.
	// Default: 5s.
	OpenTime *Duration `json:"openTime,omitempty"`
}

// ClientCertificate is a key pair in two PEM files, or in a Secret.
// +kubebuilder:validation:XValidation:rule="!has(self.certFile) && !has(self.keyFile)",message="certFile and keyFile are for manifests in a directory: use secretRef"
// +kubebuilder:validation:XValidation:rule="has(self.secretRef)",message="secretRef is required"
type ClientCertificate struct {
	// CertFile holds the certificate, followed by its chain. Required without SecretRef.
	CertFile string `json:"certFile,omitempty"`
	// KeyFile holds the private key, unencrypted. Required without SecretRef.
	KeyFile string `json:"keyFile,omitempty"`
	// SecretRef is a Secret with both, tls.crt and tls.key, in place of CertFile and
	// KeyFile.
	SecretRef *SecretName `json:"secretRef,omitempty"`
}
