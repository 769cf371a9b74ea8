// SPDX-License-Identifier: Apache-2.0

// Package registration writes what a cluster applies to call the dispatcher.
// The registration decides what the dispatcher can promise, so it is made from
// what is registered here: rules, so that the API server converts versions and
// calls only when somebody cares; and the bypasses, so that a cluster heals also
// while the dispatcher is down.
package registration

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/registry"
)

// Options say how a cluster reaches the dispatcher.
type Options struct {
	URL      string // https://host:port, without a path
	CABundle []byte // PEM, of the dispatcher's serving certificate; empty: the system's trust roots
	Static   bool   // for the control plane's disk (KEP-5793) instead of the API
}

// Registration is what a cluster applies. A phase without webhooks is nil.
type Registration struct {
	Validating *admissionregistrationv1.ValidatingWebhookConfiguration
	Mutating   *admissionregistrationv1.MutatingWebhookConfiguration
}

// The names of the registration. Static manifests must end in a suffix that the
// API does not accept, so that the two cannot be confused.
const (
	configurationName = "admission-dispatcher"
	staticSuffix      = ".static.k8s.io"
	webhookDomain     = ".admission-dispatcher.dispatcher.dev"
)

// defaultTimeout is registered where the Cluster does not say what it has.
const defaultTimeout = 10 * time.Second

// New returns the registration of a cluster. The same input gives the same
// registration.
func New(c *registry.Cluster, o Options) Registration {
	var r Registration
	if len(c.Validating.Webhooks) > 0 {
		r.Validating = validating(c, o)
	}
	if len(c.Mutating.Webhooks) > 0 {
		r.Mutating = mutating(c, o)
	}
	return r
}

func validating(c *registry.Cluster, o Options) *admissionregistrationv1.ValidatingWebhookConfiguration {
	p := partsOf(c, registry.Validating, o)
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   typeMeta("ValidatingWebhookConfiguration"),
		ObjectMeta: metav1.ObjectMeta{Name: p.configuration},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    p.name,
			ClientConfig:            p.clientConfig,
			Rules:                   p.rules,
			FailurePolicy:           &p.failurePolicy,
			MatchPolicy:             &p.matchPolicy,
			NamespaceSelector:       p.namespaceSelector,
			ObjectSelector:          &metav1.LabelSelector{},
			MatchConditions:         p.conditions,
			SideEffects:             &p.sideEffects,
			TimeoutSeconds:          &p.timeoutSeconds,
			AdmissionReviewVersions: p.reviewVersions,
		}},
	}
}

func mutating(c *registry.Cluster, o Options) *admissionregistrationv1.MutatingWebhookConfiguration {
	p := partsOf(c, registry.Mutating, o)
	never := admissionregistrationv1.NeverReinvocationPolicy // the second round is ours
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   typeMeta("MutatingWebhookConfiguration"),
		ObjectMeta: metav1.ObjectMeta{Name: p.configuration},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    p.name,
			ClientConfig:            p.clientConfig,
			Rules:                   p.rules,
			FailurePolicy:           &p.failurePolicy,
			MatchPolicy:             &p.matchPolicy,
			NamespaceSelector:       p.namespaceSelector,
			ObjectSelector:          &metav1.LabelSelector{},
			MatchConditions:         p.conditions,
			ReinvocationPolicy:      &never,
			SideEffects:             &p.sideEffects,
			TimeoutSeconds:          &p.timeoutSeconds,
			AdmissionReviewVersions: p.reviewVersions,
		}},
	}
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: kind}
}

// parts are what the registrations of both phases have in common.
type parts struct {
	configuration, name string
	clientConfig        admissionregistrationv1.WebhookClientConfig
	rules               []admissionregistrationv1.RuleWithOperations
	failurePolicy       admissionregistrationv1.FailurePolicyType
	matchPolicy         admissionregistrationv1.MatchPolicyType
	namespaceSelector   *metav1.LabelSelector
	conditions          []admissionregistrationv1.MatchCondition
	sideEffects         admissionregistrationv1.SideEffectClass
	timeoutSeconds      int32
	reviewVersions      []string
}

func partsOf(c *registry.Cluster, phase registry.Phase, o Options) parts {
	url := o.URL + "/v1/clusters/" + c.Name + "/" + phase.String()
	webhooks := c.Chain(phase).Webhooks
	p := parts{
		configuration:  configurationName,
		name:           phase.String() + webhookDomain,
		clientConfig:   admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: o.CABundle},
		rules:          union(webhooks),
		failurePolicy:  failurePolicy(webhooks),
		matchPolicy:    admissionregistrationv1.Equivalent,
		sideEffects:    admissionregistrationv1.SideEffectClassNoneOnDryRun,
		timeoutSeconds: int32(timeoutOf(c) / time.Second),
		reviewVersions: []string{"v1"},
	}
	if o.Static {
		p.configuration += staticSuffix
	}
	p.namespaceSelector, p.conditions = exclusions(c.Bypass.Sources())
	return p
}

// failurePolicy fails closed if anybody behind us does. A webhook in a mode that
// never denies has no say.
func failurePolicy(webhooks []*registry.Webhook) admissionregistrationv1.FailurePolicyType {
	for _, w := range webhooks {
		if w.FailurePolicy == registry.Fail && w.Mode == registry.Enforce {
			return admissionregistrationv1.Fail
		}
	}
	return admissionregistrationv1.Ignore
}

func timeoutOf(c *registry.Cluster) time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return defaultTimeout
}
