// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"net/url"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	webhooktesting "k8s.io/apiserver/pkg/admission/plugin/webhook/testing"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// namespace is where the published cases happen; their data source knows it.
const namespace = "webhook-test"

// plugin is what the two plugins have in common.
type plugin interface {
	SetAuthenticationInfoResolverWrapper(webhook.AuthenticationInfoResolverWrapper)
	SetServiceResolver(webhook.ServiceResolver)
	SetExternalKubeClientSet(kubernetes.Interface)
	SetExternalKubeInformerFactory(informers.SharedInformerFactory)
	ValidateInitialization() error
}

// route is how a plugin reaches its webhooks: directly, or through the dispatcher.
type route struct {
	server *url.URL // of the published webhooks
	auth   webhook.AuthenticationInfoResolver
}

func (r route) prepare(t *testing.T, p plugin, client kubernetes.Interface, factory informers.SharedInformerFactory) {
	t.Helper()
	p.SetAuthenticationInfoResolverWrapper(webhooktesting.Wrapper(r.auth))
	p.SetServiceResolver(webhooktesting.NewServiceResolver(*r.server))
	p.SetExternalKubeClientSet(client)
	p.SetExternalKubeInformerFactory(factory)
	if err := p.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
}

func (r route) validate(ctx context.Context, t *testing.T, hooks []admissionregistrationv1.ValidatingWebhook, a admission.Attributes) error {
	t.Helper()
	p, err := validating.NewValidatingAdmissionWebhook(nil)
	if err != nil {
		t.Fatal(err)
	}
	client, factory := webhooktesting.NewFakeValidatingDataSource(namespace, hooks, t.Context().Done())
	r.prepare(t, p, client, factory)
	return p.Validate(ctx, a, webhooktesting.NewObjectInterfacesForTest())
}

func (r route) admit(ctx context.Context, t *testing.T, hooks []admissionregistrationv1.MutatingWebhook, a admission.Attributes) error {
	t.Helper()
	p, err := mutating.NewMutatingWebhook(nil)
	if err != nil {
		t.Fatal(err)
	}
	client, factory := webhooktesting.NewFakeMutatingDataSource(namespace, hooks, t.Context().Done())
	r.prepare(t, p, client, factory)
	return p.Admit(ctx, a, webhooktesting.NewObjectInterfacesForTest())
}

// direct calls the published webhooks with the credentials that they ask for, or
// panics instead of finding them.
func direct(server *url.URL, panics string) route {
	if panics != "" {
		return route{server, webhooktesting.NewPanickingAuthenticationInfoResolver(panics)}
	}
	return route{server, webhooktesting.NewAuthenticationInfoResolver(new(int32))}
}

// asCaller presents one client certificate to whoever is called.
type asCaller struct{ config *rest.Config }

func (c asCaller) ClientConfigFor(string) (*rest.Config, error) { return c.config, nil }

func (c asCaller) ClientConfigForService(string, string, int) (*rest.Config, error) {
	return c.config, nil
}

// outerName is the webhook that the dispatcher is to the API server.
const outerName = "dispatcher.conformance.example.com"

// outer registers the dispatcher, as for a cluster, for everything.
func outer(p *process, cluster, phase string) admissionregistrationv1.ValidatingWebhook {
	var (
		address     = "https://" + p.address + "/v1/clusters/" + cluster + "/" + phase
		fail        = admissionregistrationv1.Fail
		equivalent  = admissionregistrationv1.Equivalent
		sideEffects = admissionregistrationv1.SideEffectClassNoneOnDryRun
		timeout     = int32(10)
		all         = admissionregistrationv1.AllScopes
	)
	return admissionregistrationv1.ValidatingWebhook{
		Name:         outerName,
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &address, CABundle: p.pki.PEM},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}, Scope: &all},
		}},
		FailurePolicy:           &fail,
		MatchPolicy:             &equivalent,
		NamespaceSelector:       &metav1.LabelSelector{},
		ObjectSelector:          &metav1.LabelSelector{},
		SideEffects:             &sideEffects,
		TimeoutSeconds:          &timeout,
		AdmissionReviewVersions: []string{"v1"},
	}
}

// decision is what a plugin came to.
type decision struct {
	err         error
	attributes  admission.Attributes
	annotations map[string]string
}

func decided(err error, a admission.Attributes) decision {
	return decision{err, a, a.(*webhooktesting.FakeAttributes).GetAnnotations(auditinternal.LevelMetadata)}
}

// code is the status code of a denial, 0 of an allow.
func (d decision) code() int32 {
	var status apierrors.APIStatus
	switch {
	case d.err == nil:
		return 0
	case errors.As(d.err, &status):
		return status.Status().Code
	}
	return -1
}
