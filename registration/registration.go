// SPDX-License-Identifier: Apache-2.0

// Package registration writes what a cluster applies to call the dispatcher.
// The registration decides what the dispatcher can promise, so it is made from
// what is registered here, entry by entry. While the dispatcher is up, the API
// server sends each webhook's requests in the form in which it would have sent
// them to that webhook itself. While it is down, the API server denies what would
// be denied with all webhooks down and the same bypasses.
package registration

import (
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/chain"
)

// Options say how a cluster reaches the dispatcher.
type Options struct {
	URL      string   // https://host:port, without a path
	Service  *Service // in the cluster, in place of URL
	CABundle []byte   // PEM, of the serving certificate there; empty: the system's trust roots
	Static   bool     // for the control plane's disk (KEP-5793) instead of the API
	// PathSecret goes into the URL. Empty: a placeholder does, where the cluster can
	// present nothing else.
	PathSecret string
	Platform   *Platform // where the control plane runs; nil: not known
}

// Registration is what a cluster applies. A phase without webhooks is nil.
type Registration struct {
	Validating *admissionregistrationv1.ValidatingWebhookConfiguration
	Mutating   *admissionregistrationv1.MutatingWebhookConfiguration

	entries  [2][]entry // by phase
	platform *Platform
	unfilled bool // a placeholder is where a path secret must be
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
// registration. The error says what an API server could not be told, or would not
// accept.
func New(c *chain.Cluster, o Options) (Registration, error) {
	var r Registration
	for _, phase := range []chain.Phase{chain.Mutating, chain.Validating} {
		entries, err := entriesOf(c, phase, o.Static)
		if err != nil {
			return Registration{}, fmt.Errorf("the registration of cluster %s, phase %s: %w", c.Name, phase, err)
		}
		r.entries[phase] = entries
	}
	form := form{cluster: c, options: o}
	r.platform, r.unfilled = o.Platform, form.pathSecret() == PathSecretPlaceholder
	if entries := r.entries[chain.Validating]; len(entries) > 0 {
		r.Validating = form.validating(entries)
	}
	if entries := r.entries[chain.Mutating]; len(entries) > 0 {
		r.Mutating = form.mutating(entries)
	}
	return r, nil
}

// Only returns the registration of one phase.
func (r Registration) Only(phase chain.Phase) Registration {
	if phase == chain.Mutating {
		r.Validating = nil
	} else {
		r.Mutating = nil
	}
	r.entries[1-phase] = nil
	return r
}

// entriesOf returns the entries of a phase, in the order in which they are called.
func entriesOf(c *chain.Cluster, phase chain.Phase, static bool) ([]entry, error) {
	var all []entry
	list, bypass, spare := c.Chain(phase), exclusions(c.Bypass.Sources()), mostDivided
	if static {
		bypass = append(bypass, admissionIsExempt())
	}
	for i, path := range list.Paths {
		p, err := partOf(list, phase, path)
		if err != nil {
			return nil, err
		}
		cells := p.cells(spare)
		if len(cells) > 1 {
			spare -= 2 * len(cells)
		}
		name := phase.String()
		if i > 0 {
			name = fmt.Sprintf("%s-path%d", name, i+1)
		}
		entries, err := p.entries(name, cells, bypass, c.FailOpen.Sources())
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
	}
	return all, nil
}

// form makes objects of entries.
type form struct {
	cluster *chain.Cluster
	options Options
}

func (f form) validating(entries []entry) *admissionregistrationv1.ValidatingWebhookConfiguration {
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta: typeMeta("ValidatingWebhookConfiguration"), ObjectMeta: f.meta(),
	}
	for i := range entries {
		w := f.webhook(&entries[i])
		c.Webhooks = append(c.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name:                    w.Name,
			ClientConfig:            w.ClientConfig,
			Rules:                   w.Rules,
			FailurePolicy:           w.FailurePolicy,
			MatchPolicy:             w.MatchPolicy,
			NamespaceSelector:       w.NamespaceSelector,
			ObjectSelector:          w.ObjectSelector,
			MatchConditions:         w.MatchConditions,
			SideEffects:             w.SideEffects,
			TimeoutSeconds:          w.TimeoutSeconds,
			AdmissionReviewVersions: w.AdmissionReviewVersions,
		})
	}
	return c
}

func (f form) mutating(entries []entry) *admissionregistrationv1.MutatingWebhookConfiguration {
	c := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta: typeMeta("MutatingWebhookConfiguration"), ObjectMeta: f.meta(),
	}
	for i := range entries {
		w := f.webhook(&entries[i])
		w.ReinvocationPolicy = new(admissionregistrationv1.NeverReinvocationPolicy) // the second round is ours
		c.Webhooks = append(c.Webhooks, w)
	}
	return c
}

// webhook is an entry as the API has it.
func (f form) webhook(e *entry) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name:                    e.name + webhookDomain,
		ClientConfig:            f.client(e),
		Rules:                   e.rules,
		FailurePolicy:           &e.failurePolicy,
		MatchPolicy:             &e.matchPolicy,
		NamespaceSelector:       e.namespaces,
		ObjectSelector:          e.objects.selector(),
		MatchConditions:         e.conditions,
		SideEffects:             new(admissionregistrationv1.SideEffectClassNoneOnDryRun),
		TimeoutSeconds:          new(int32(timeoutOf(f.cluster) / time.Second)),
		AdmissionReviewVersions: []string{"v1"},
	}
}

// client says where an entry's webhooks are called.
func (f form) client(e *entry) admissionregistrationv1.WebhookClientConfig {
	config := admissionregistrationv1.WebhookClientConfig{CABundle: f.options.CABundle}
	if to := f.options.Service; to != nil {
		config.Service = &admissionregistrationv1.ServiceReference{Namespace: to.Namespace, Name: to.Name, Port: new(to.Port), Path: new(f.path(e))}
		return config
	}
	config.URL = new(f.options.URL + f.path(e))
	return config
}

// path is that of an entry's URL, or behind a Service.
func (f form) path(e *entry) string {
	path := "/v1/clusters/" + f.cluster.Name + "/"
	if secret := f.pathSecret(); secret != "" {
		path += secret + "/"
	}
	path += e.phase.String()
	if e.path.Segment != "" {
		path += "/" + e.path.Segment
	}
	return path
}

// PathSecretPlaceholder stands where the path secret belongs in what is printed without
// one. No API server accepts it, in a URL or in the path of a Service reference: applied as
// it is, it would fail every call.
const PathSecretPlaceholder = "%PATH-SECRET%"

// pathSecret returns what stands in the path for a secret; "": the cluster needs none.
func (f form) pathSecret() string {
	c := &f.cluster.Credentials
	if f.options.PathSecret == "" && len(c.PathSecrets) > 0 && !c.Certificate && !c.Token {
		return PathSecretPlaceholder
	}
	return f.options.PathSecret
}

func (f form) meta() metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Name: configurationName, Annotations: f.options.Platform.annotated()}
	if f.options.Static {
		meta.Name += staticSuffix
	}
	return meta
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: kind}
}

func timeoutOf(c *chain.Cluster) time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return defaultTimeout
}
