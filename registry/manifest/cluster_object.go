// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/exempt"
)

// ClusterObject is a Cluster of group dispatcher.dev/v1alpha1 as it stands in a
// manifest: one caller, how it proves who it is, and what holds for it alone.
// Its name stands in the path of the URL and in the Admission-Cluster header;
// its labels are what clusterSelectors and the cluster variable of
// matchConditions see.
type ClusterObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec ClusterSpec `json:"spec"`
}

// ClusterSpec is the spec of a Cluster.
type ClusterSpec struct {
	// Authentication says how the cluster proves its name. At least one way is
	// required.
	Authentication Authentication `json:"authentication"`
	// TimeoutSeconds is the timeoutSeconds under which this cluster registered
	// the dispatcher: 1 to 30, in seconds. Default: unknown, only the caller's
	// ?timeout= counts. Danger: a value above the registered one takes a second
	// from every admission; with one below it, or none, an answer may come after
	// the caller gave up, because the caller rounds ?timeout= up.
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// KubernetesVersion is the version of the cluster, such as "1.36" or "v1.36.3";
	// while it is upgraded, the lowest of its API servers. Default: what its API says
	// where KubeconfigFile is set, otherwise unknown. From 1.37 on API servers send
	// no reviews of authentication and authorization; those of older and unknown
	// ones are judged by the webhooks that select them. Danger: too high a version
	// lets such reviews pass without any webhook being called.
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
	// Bypass names requests that pass without any webhook being called.
	Bypass RequestRuleList `json:"bypass,omitzero"`
	// FailOpen names requests whose webhooks are called and whose denials
	// stand, but which no failing call blocks.
	FailOpen RequestRuleList `json:"failOpen,omitzero"`
	// Limits bound what this cluster may send.
	Limits Limits `json:"limits,omitzero"`
}

// files returns the names of files that the Cluster names, but for the kubeconfig;
// "" names none.
func (s *ClusterSpec) files() []string {
	if c := s.Authentication.Certificate; c != nil {
		return []string{c.CAFile}
	}
	return nil
}

// Authentication lists the credentials by which a Cluster is known. No
// credential may be shared by two Clusters.
type Authentication struct {
	// Certificate identifies the cluster by the names in its client certificate.
	Certificate *CertificateIdentity `json:"certificate,omitempty"`
	// BearerTokenSHA256 are SHA-256 sums of bearer tokens, 64 hexadecimal digits
	// each. Danger: never the token itself; it would be readable here for ever.
	BearerTokenSHA256 []string `json:"bearerTokenSHA256,omitempty"`
	// Anonymous accepts callers without any credential as this cluster; at most
	// one Cluster may. Default: false. Danger: whoever reaches the listener is
	// this cluster.
	Anonymous bool `json:"anonymous,omitempty"`
}

// CertificateIdentity lists names of which a client certificate needs one.
type CertificateIdentity struct {
	// CommonNames are common names of the certificate's subject.
	CommonNames []string `json:"commonNames,omitempty"`
	// DNSNames are DNS names of the certificate. No wildcards.
	DNSNames []string `json:"dnsNames,omitempty"`
	// URIs are URI names of the certificate, such as SPIFFE identities.
	URIs []string `json:"uris,omitempty"`
	// CAFile pins the names to the cluster's own CAs, in PEM: they verify its
	// certificates, and no other CA does. They need not be in the process's
	// tls.clientCAFile. Default: any CA in tls.clientCAFile. Danger: without a pin
	// the CA of one cluster can mint the name of another.
	CAFile string `json:"caFile,omitempty"`
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
type RequestRuleList struct {
	// Inherit says whether the process's rules hold too. Default: true. Danger:
	// without the process's bypass a failing webhook can keep kube-system from
	// healing.
	Inherit *bool `json:"inherit,omitempty"`
	// Rules are the cluster's own rules, after the inherited ones.
	Rules []exempt.Rule `json:"rules,omitempty"`
}

// Limits bound what a cluster may send.
type Limits struct {
	// RequestBytes bounds a request's body, in bytes. Default: the process's
	// limit, which it cannot exceed. Danger: a review above it is denied with 413.
	RequestBytes int64 `json:"requestBytes,omitempty"`
}
