// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cluster is one caller, how it proves who it is, and what holds for it alone.
// Its name stands in the path of the URL and in the Admission-Cluster header;
// its labels are what clusterSelectors and the cluster variable of
// matchConditions see.
//
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   ClusterSpec `json:"spec"`
	Status Status      `json:"status,omitzero"`
}

// ClusterList is a list of Clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Cluster `json:"items"`
}

// ClusterSpec is the spec of a Cluster.
// +kubebuilder:validation:XValidation:rule="!(has(self.namespaces) && has(self.kubeconfigSecretRef))",message="namespaces and kubeconfigSecretRef exclude each other: the labels have one source"
// +kubebuilder:validation:XValidation:rule="!has(self.kubeconfigFile)",message="kubeconfigFile is for manifests in a directory: use kubeconfigSecretRef"
// +kubebuilder:validation:XValidation:rule="!has(self.cell) || size(self.cell) == 0 || self.cell.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="cell must be a DNS label such as c7"
// +kubebuilder:validation:XValidation:rule="!has(self.previousCell) || size(self.previousCell) == 0 || self.previousCell.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="previousCell must be a DNS label such as c7"
// +kubebuilder:validation:XValidation:rule="!has(self.previousCell) || size(self.previousCell) == 0 || has(self.cell) && size(self.cell) > 0 && self.cell != self.previousCell",message="previousCell needs a cell, and another one"
// +kubebuilder:validation:XValidation:rule="!has(self.kubernetesVersion) || size(self.kubernetesVersion) == 0 || self.kubernetesVersion.matches('^v?[0-9]{1,4}[.][0-9]{1,4}([.+-].*)?$')",message="kubernetesVersion must be a version of Kubernetes such as 1.36 or v1.36.3"
// +kubebuilder:validation:XValidation:rule="!has(self.bypass) || !has(self.bypass.rules) || self.bypass.rules.all(r, !has(r.extraKeys))",message="only failOpen rules may look at userInfo.extra"
// +kubebuilder:validation:XValidation:rule="!has(self.registration) || !has(self.registration.policy) || self.registration.policy != 'Apply' || has(self.kubeconfigSecretRef)",message="registration.policy Apply needs kubeconfigSecretRef: it is applied with it"
// +kubebuilder:validation:XValidation:rule="!has(self.mirror) || has(self.kubeconfigSecretRef)",message="mirror needs kubeconfigSecretRef: the configurations are read from the API of the cluster"
type ClusterSpec struct {
	// Authentication says how the cluster proves its name. At least one way is
	// required.
	Authentication Authentication `json:"authentication"`
	// TimeoutSeconds is the timeoutSeconds under which this cluster registered
	// the dispatcher: 1 to 30, in seconds. Default: unknown, only the caller's
	// ?timeout= counts. Danger: a value above the registered one takes a second
	// from every admission; with one below it, or none, an answer may come after
	// the caller gave up, because the caller rounds ?timeout= up.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=30
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// KubernetesVersion is the version of the cluster, such as "1.36" or "v1.36.3";
	// while it is upgraded, the lowest of its API servers. Default: what its API says
	// where KubeconfigFile is set, otherwise unknown. From 1.37 on API servers send
	// no reviews of authentication and authorization; those of older and unknown
	// ones are judged by the webhooks that select them. Danger: too high a version
	// lets such reviews pass without any webhook being called.
	// +kubebuilder:validation:MaxLength=63
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Namespaces lists the labels of the cluster's namespaces. Default: without
	// KubeconfigFile only kubernetes.io/metadata.name is known, and a webhook
	// whose namespaceSelector needs another label is refused.
	Namespaces *NamespaceList `json:"namespaces,omitempty"`
	// KubeconfigFile names a kubeconfig for the cluster's API, from which the
	// namespaces and their labels are read; not together with Namespaces. The
	// current context counts. Default: none. Danger: while the API does not
	// answer, webhooks that need labels refuse requests in namespaces not known.
	KubeconfigFile string `json:"kubeconfigFile,omitempty"`
	// KubeconfigSecretRef is a value of a Secret with the kubeconfig, in place of
	// KubeconfigFile. Default key: kubeconfig.
	KubeconfigSecretRef *SecretKey `json:"kubeconfigSecretRef,omitempty"`
	// Bypass names requests that pass without any webhook being called.
	Bypass RequestRuleList `json:"bypass,omitzero"`
	// FailOpen names requests whose webhooks are called and whose denials
	// stand, but which no failing call blocks.
	FailOpen RequestRuleList `json:"failOpen,omitzero"`
	// Limits bound what this cluster may send.
	Limits Limits `json:"limits,omitzero"`
	// Registration says what the controller does about the objects by which this
	// cluster calls us.
	Registration Registration `json:"registration,omitzero"`
	// Services say how Services of the cluster are reached from outside of it, for
	// webhooks that name one. The first entry that names a Service counts; the
	// endpoints of a WebhookBinding come before all. Default: the Service's name is
	// looked up in DNS, which finds those of the cluster that the dispatcher runs in.
	// +kubebuilder:validation:MaxItems=64
	Services []ServiceRoute `json:"services,omitempty"`
	// Mirror lets webhook configurations of the cluster's own API take part that have
	// the label dispatcher.dev/mirror: "true", in this cluster alone. It is done by
	// dispatcher-kube sync. Default: none takes part.
	Mirror *ClusterMirror `json:"mirror,omitempty"`
	// Cell is the cell whose replicas serve the cluster, a DNS label. Default: only
	// dispatchers that have no cell serve it. Danger: the cell that the cluster's host
	// name leads to must be this one, or previousCell, or its calls are refused.
	// +kubebuilder:validation:MaxLength=63
	Cell string `json:"cell,omitempty"`
	// PreviousCell serves the cluster, too, while its callers move to Cell: until DNS
	// answers and open connections of before are gone. Default: none.
	// +kubebuilder:validation:MaxLength=63
	PreviousCell string `json:"previousCell,omitempty"`
}

// IsIn reports whether a cell serves the cluster.
func (s *ClusterSpec) IsIn(cell string) bool {
	return cell != "" && (s.Cell == cell || s.PreviousCell == cell)
}

// ServiceRoute says how some Services of a cluster are reached. Whatever is dialled,
// the certificate must have the name <name>.<namespace>.svc, which is sent as SNI, too.
// +kubebuilder:validation:XValidation:rule="self.names.all(n, n.matches('^[-a-z0-9*?]{1,63}/[-a-z0-9*?]{1,63}$'))",message="names must have the form namespace/name; */* is every Service"
// +kubebuilder:validation:XValidation:rule="has(self.gateway) != has(self.endpoints)",message="exactly one of gateway or endpoints"
// +kubebuilder:validation:XValidation:rule="!has(self.gateway) || self.gateway.matches('^([^:]+|\\\\[.+\\\\]):[0-9]{1,5}$')",message="gateway must be host:port"
// +kubebuilder:validation:XValidation:rule="!has(self.endpoints) || self.endpoints.all(e, e.matches('^([^:]+|\\\\[.+\\\\]):[0-9]{1,5}$'))",message="endpoints must be host:port each"
// +kubebuilder:validation:XValidation:rule="!has(self.endpoints) || size(self.names) == 1 && !self.names[0].contains('*') && !self.names[0].contains('?')",message="endpoints are those of one Service: names must be its namespace/name"
type ServiceRoute struct {
	// Names are globs on namespace/name of Services, such as "policies/*"; * does not
	// cross the slash. Required.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=127
	Names []string `json:"names"`
	// Gateway is host:port of what passes TLS connections on to these Services, and
	// tells them apart by SNI. Danger: a gateway that ends TLS is not who the
	// certificate says.
	// +kubebuilder:validation:MaxLength=300
	Gateway string `json:"gateway,omitempty"`
	// Endpoints are host:port each of one Service, in place of a gateway.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=300
	Endpoints []string `json:"endpoints,omitempty"`
}

// ClusterMirror bounds what configurations of a cluster's own API may call.
// +kubebuilder:validation:XValidation:rule="!has(self.hosts) || self.hosts.all(h, h.matches('^([*][.])?[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?$'))",message="hosts must be host or host:port each, in lower case; *.example.com is every host one label below"
type ClusterMirror struct {
	// Hosts are what URLs of webhooks may name: host or host:port, a host with *. in
	// front for all that are one label below. Without a port it is 443. Services are
	// reached as spec.services says, and need no host. Default: none, Services alone.
	// Danger: whoever may write webhook configurations in the cluster has the
	// dispatcher call any path of these hosts.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=259
	Hosts []string `json:"hosts,omitempty"`
}

// Registration is what is done about the registration of a cluster.
type Registration struct {
	// Policy is Report, Apply or Off. Report compares what the cluster has with what
	// would be printed for it, Apply also applies it where the controller may, and Off
	// does not look. Default: Report. Danger: with Apply the kubeconfig of the cluster
	// must be allowed to change the registration, and every accepted change of a webhook
	// or a policy changes it in the cluster. Off is written "Off": without quotes it is
	// false in YAML.
	// +kubebuilder:validation:Enum="";Report;Apply;Off
	Policy string `json:"policy,omitempty"`
}

// The policies of registrations.
const (
	RegistrationReport = "Report"
	RegistrationApply  = "Apply"
	RegistrationOff    = "Off"
)

// Authentication lists the credentials by which a Cluster is known. No
// credential may be shared by two Clusters.
// +kubebuilder:validation:XValidation:rule="has(self.certificate) || has(self.bearerTokenSHA256) && size(self.bearerTokenSHA256) > 0 || has(self.pathSecretSHA256) && size(self.pathSecretSHA256) > 0 || has(self.jwt) || has(self.anonymous) && self.anonymous",message="at least one of certificate, bearerTokenSHA256, jwt, pathSecretSHA256 or anonymous"
// +kubebuilder:validation:XValidation:rule="!has(self.bearerTokenSHA256) || self.bearerTokenSHA256.all(s, s.matches('^[0-9a-fA-F]{64}$'))",message="bearerTokenSHA256 must be 64 hexadecimal digits each: the SHA-256 of the token, never the token"
// +kubebuilder:validation:XValidation:rule="!has(self.pathSecretSHA256) || self.pathSecretSHA256.all(s, s.matches('^[0-9a-fA-F]{64}$'))",message="pathSecretSHA256 must be 64 hexadecimal digits each: the SHA-256 of the secret, never the secret"
// +kubebuilder:validation:XValidation:rule="!has(self.sourceRanges) || self.sourceRanges.all(r, r.matches('^[0-9a-fA-F:.]+/[0-9]{1,3}$'))",message="sourceRanges must be CIDRs such as 10.0.0.0/8 or fd00::/8"
type Authentication struct {
	// Certificate identifies the cluster by the names in its client certificate.
	Certificate *CertificateIdentity `json:"certificate,omitempty"`
	// BearerTokenSHA256 are SHA-256 sums of bearer tokens, 64 hexadecimal digits
	// each. Danger: never the token itself; it would be readable here for ever.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=8192
	BearerTokenSHA256 []string `json:"bearerTokenSHA256,omitempty"`
	// JWT identifies the cluster by the tokens that its kube-apiserver issues
	// (KEP-6060).
	JWT *JWT `json:"jwt,omitempty"`
	// Anonymous accepts callers without any credential as this cluster; at most
	// one Cluster may. Default: false. Danger: whoever reaches the listener is
	// this cluster.
	Anonymous bool `json:"anonymous,omitempty"`
	// PathSecretSHA256 are SHA-256 sums of secrets in the path of the URL that the
	// cluster registers, /v1/clusters/NAME/SECRET/validate: for clusters whose API
	// server can present nothing. 64 hexadecimal digits each, at most two: the one in
	// use and the next. A secret is 32 to 128 lowercase letters and digits, made of at
	// least 128 random bits, and does not look like a sum. Danger: never the secret itself. Who may read the webhook
	// configurations of the cluster knows it, and an API server shows the URL to its
	// user when a call fails: give the cluster SourceRanges, too.
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MaxLength=8192
	PathSecretSHA256 []string `json:"pathSecretSHA256,omitempty"`
	// SourceRanges are the CIDRs from which the cluster's API servers call: the address
	// of the connection counts, and no header does. Default: every address. Danger:
	// behind a proxy or load balancer that opens connections of its own, that is the
	// address seen; the PROXY protocol is not read.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	SourceRanges []string `json:"sourceRanges,omitempty"`
	// Callers are other API servers of the cluster that call us: aggregated ones
	// (extension API servers), each by a credential of its own. They share the
	// cluster's limits. Default: none, an API server that shows no credential of the
	// cluster is refused, and its own failurePolicy decides.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Callers []Caller `json:"callers,omitempty"`
}

// Caller is an API server of the cluster that serves API groups of its own.
// +kubebuilder:validation:XValidation:rule="!has(self.jwt) || has(self.jwt.subjects) && size(self.jwt.subjects) > 0",message="jwt of a caller must have subjects: they tell its tokens from the kube-apiserver's"
// +kubebuilder:validation:XValidation:rule="has(self.certificate) || has(self.bearerTokenSHA256) && size(self.bearerTokenSHA256) > 0 || has(self.jwt)",message="at least one of certificate, bearerTokenSHA256 or jwt"
// +kubebuilder:validation:XValidation:rule="!has(self.bearerTokenSHA256) || self.bearerTokenSHA256.all(s, s.matches('^[0-9a-fA-F]{64}$'))",message="bearerTokenSHA256 must be 64 hexadecimal digits each: the SHA-256 of the token, never the token"
type Caller struct {
	// Name names the caller in the decision log, in logs and in problems.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
	// Certificate identifies the caller by the names in its client certificate, as
	// it does the cluster.
	Certificate *CertificateIdentity `json:"certificate,omitempty"`
	// BearerTokenSHA256 are SHA-256 sums of bearer tokens, as for the cluster.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=8192
	BearerTokenSHA256 []string `json:"bearerTokenSHA256,omitempty"`
	// JWT identifies the caller by tokens, as it does the cluster. Subjects is
	// required. What a token attests narrows APIGroups further.
	JWT *JWT `json:"jwt,omitempty"`
	// APIGroups are the groups that the caller serves. A review about another one is
	// refused with 403. Danger: a group that is missing leaves its requests to the
	// failurePolicy of the registration.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	APIGroups []string `json:"apiGroups"`
}

// CertificateIdentity lists names of which a client certificate needs one.
// +kubebuilder:validation:XValidation:rule="has(self.commonNames) && size(self.commonNames) > 0 || has(self.dnsNames) && size(self.dnsNames) > 0 || has(self.uris) && size(self.uris) > 0",message="at least one of commonNames, dnsNames or uris"
// +kubebuilder:validation:XValidation:rule="!has(self.dnsNames) || self.dnsNames.all(n, !n.contains('*'))",message="wildcards are not permitted in dnsNames: a cluster has a name"
// +kubebuilder:validation:XValidation:rule="!has(self.uris) || self.uris.all(u, isURL(u))",message="uris must be absolute URIs"
// +kubebuilder:validation:XValidation:rule="!has(self.caFile)",message="caFile is for manifests in a directory: use caSecretRef or caConfigMapRef"
// +kubebuilder:validation:XValidation:rule="!has(self.caSecretRef) || !has(self.caConfigMapRef)",message="caSecretRef and caConfigMapRef exclude each other"
type CertificateIdentity struct {
	// CommonNames are common names of the certificate's subject.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	CommonNames []string `json:"commonNames,omitempty"`
	// DNSNames are DNS names of the certificate. No wildcards.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	DNSNames []string `json:"dnsNames,omitempty"`
	// URIs are URI names of the certificate, such as SPIFFE identities.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=2048
	URIs []string `json:"uris,omitempty"`
	// CAFile pins the names to the cluster's own CAs, in PEM: they verify its
	// certificates, and no other CA does. They need not be in the process's
	// tls.clientCAFile. Default: any CA in tls.clientCAFile. Danger: without a pin
	// the CA of one cluster can mint the name of another.
	CAFile string `json:"caFile,omitempty"`
	// CASecretRef is a value of a Secret with these certificates, in place of CAFile.
	// Default key: ca.crt.
	CASecretRef *SecretKey `json:"caSecretRef,omitempty"`
	// CAConfigMapRef is the same in a ConfigMap.
	CAConfigMapRef *ConfigMapKey `json:"caConfigMapRef,omitempty"`
}

// JWT says which JSON Web Tokens identify an API server: those that a key of the set has
// signed with RS256, RS384, RS512, ES256, ES384 or ES512, that are of this issuer and for
// one of these audiences, and good for at most 24 hours. The keys of a set may be those of
// one Cluster only.
// +kubebuilder:validation:XValidation:rule="!has(self.jwksFile)",message="jwksFile is for manifests in a directory: use jwksSecretRef or jwksConfigMapRef"
// +kubebuilder:validation:XValidation:rule="has(self.jwksSecretRef) != has(self.jwksConfigMapRef)",message="one of jwksSecretRef or jwksConfigMapRef, and not both"
type JWT struct {
	// Issuer is the claim iss, exactly: the first --service-account-issuer of the
	// kube-apiserver.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Issuer string `json:"issuer"`
	// Audiences are those of which the claim aud must have one, exactly. A token of
	// KEP-6060 has the URL of the webhook that is called. Danger: a URL of the
	// registration that is missing leaves its requests to the failurePolicy of the
	// registration.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=2048
	Audiences []string `json:"audiences"`
	// Subjects are the claims sub that are accepted, such as
	// system:serviceaccount:kube-system:webhook-auth. Default: any, of a token that
	// attests an API group. Danger: without an attestation whoever may request tokens
	// of a subject, or run a Pod as it, is this API server.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Subjects []string `json:"subjects,omitempty"`
	// JWKSFile names the issuer's public keys, as its /openid/v1/jwks shows them.
	JWKSFile string `json:"jwksFile,omitempty"`
	// JWKSSecretRef is a value of a Secret with these keys, in place of JWKSFile.
	// Default key: jwks.json.
	JWKSSecretRef *SecretKey `json:"jwksSecretRef,omitempty"`
	// JWKSConfigMapRef is the same in a ConfigMap.
	JWKSConfigMapRef *ConfigMapKey `json:"jwksConfigMapRef,omitempty"`
}

// NamespaceList is the authoritative list of a cluster's namespaces.
type NamespaceList struct {
	// Labels are the labels of each namespace, by its name. The label
	// kubernetes.io/metadata.name is added.
	Labels map[string]map[string]string `json:"labels,omitempty"`
	// DefaultLabels are the labels of every namespace that Labels does not
	// list. Default: such a namespace is unknown, and a webhook that needs its
	// labels refuses the request with 404. Danger: a new namespace gets these
	// labels whatever it really has.
	DefaultLabels map[string]string `json:"defaultLabels,omitempty"`
}

// RequestRuleList is a list of rules of this cluster.
// +kubebuilder:validation:XValidation:rule="!has(self.rules) || self.rules.all(r, self.rules.exists_one(s, s.name == r.name))",message="two rules have the same name"
type RequestRuleList struct {
	// Inherit says whether the process's rules hold too. Default: true. Danger:
	// without the process's bypass a failing webhook can keep kube-system from
	// healing.
	Inherit *bool `json:"inherit,omitempty"`
	// Rules are the cluster's own rules, after the inherited ones.
	// +kubebuilder:validation:MaxItems=64
	Rules []RequestRule `json:"rules,omitempty"`
}

// Limits bound what a cluster may send.
type Limits struct {
	// RequestBytes bounds a request's body, in bytes. Default: the process's
	// limit, which it cannot exceed. Danger: a review above it is denied with 413.
	// +kubebuilder:validation:Minimum=0
	RequestBytes int64 `json:"requestBytes,omitempty"`
}
