// SPDX-License-Identifier: Apache-2.0

// Package caller plays admissions the way kube-apiserver does, with its own
// webhook plugins: the mutating one, with its second round, then the validating
// one.
package caller

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
)

// Options is what a cluster has: its webhook configurations, with all defaults
// filled in, and its namespaces.
type Options struct {
	Validating []admissionregistrationv1.ValidatingWebhookConfiguration
	Mutating   []admissionregistrationv1.MutatingWebhookConfiguration
	Namespaces []corev1.Namespace

	// Authentication is how the plugins authenticate to webhooks.
	Authentication webhook.AuthenticationInfoResolver
	// Services resolves service references; nil where there are none.
	Services webhook.ServiceResolver
	// Objects converts and decodes objects.
	Objects admission.ObjectInterfaces
}

// Caller is the admission chain of one cluster. It is safe for concurrent use.
type Caller struct {
	mutating   *mutating.Plugin
	validating *validating.Plugin
	objects    admission.ObjectInterfaces
	informers  informers.SharedInformerFactory
	stop       chan struct{}
}

// New returns a Caller that is ready. The caller of New closes it.
func New(o Options) (*Caller, error) {
	m, err := mutating.NewMutatingWebhook(nil)
	if err != nil {
		return nil, err
	}
	v, err := validating.NewValidatingAdmissionWebhook(nil)
	if err != nil {
		return nil, err
	}
	client := fake.NewSimpleClientset(o.objects()...)
	c := &Caller{
		mutating:   m,
		validating: v,
		objects:    o.Objects,
		informers:  informers.NewSharedInformerFactory(client, 0),
		stop:       make(chan struct{}),
	}
	if err := errors.Join(c.initialize(m, client, o), c.initialize(v, client, o)); err != nil {
		return nil, err
	}
	c.informers.Start(c.stop)
	for kind, ok := range c.informers.WaitForCacheSync(c.stop) {
		if !ok {
			c.Close()
			return nil, fmt.Errorf("the cache of %v did not fill", kind)
		}
	}
	return c, nil
}

func (o *Options) objects() []runtime.Object {
	var all []runtime.Object
	for i := range o.Namespaces {
		all = append(all, &o.Namespaces[i])
	}
	for i := range o.Mutating {
		all = append(all, &o.Mutating[i])
	}
	for i := range o.Validating {
		all = append(all, &o.Validating[i])
	}
	return all
}

// plugin is what both plugins take from kube-apiserver's initializers.
type plugin interface {
	initializer.WantsExternalKubeClientSet
	initializer.WantsExternalKubeInformerFactory
	initializer.WantsExcludedAdmissionResources
	initializer.WantsFeatures
	SetAuthenticationInfoResolverWrapper(webhook.AuthenticationInfoResolverWrapper)
	SetServiceResolver(webhook.ServiceResolver)
}

func (c *Caller) initialize(p plugin, client kubernetes.Interface, o Options) error {
	p.SetExternalKubeClientSet(client)
	p.SetExternalKubeInformerFactory(c.informers)
	p.SetExcludedAdmissionResources(excluded)
	p.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	p.SetAuthenticationInfoResolverWrapper(func(webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
		return o.Authentication
	})
	p.SetServiceResolver(o.Services)
	return p.ValidateInitialization()
}

// Close stops the Caller's goroutines.
func (c *Caller) Close() {
	close(c.stop)
	c.informers.Shutdown()
}

// requestTimeout is how long kube-apiserver gives a whole request.
const requestTimeout = 34 * time.Second

// Play decides one admission.
func (c *Caller) Play(a Admission) Result {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	rec := &recorder{}
	ctx = rec.in(ctx)
	attr := a.Attributes()
	phase, err := c.admit(ctx, attr)
	return rec.result(phase, err, attr)
}

// admit is the chain: mutating plugins, once more if one of them asks for it, then
// validating ones.
func (c *Caller) admit(ctx context.Context, attr admission.Attributes) (Phase, error) {
	if err := c.mutating.Admit(ctx, attr, c.objects); err != nil {
		return Mutating, err
	}
	if r := attr.GetReinvocationContext(); r.ShouldReinvoke() {
		r.SetIsReinvoke()
		if err := c.mutating.Admit(ctx, attr, c.objects); err != nil {
			return Mutating, err
		}
	}
	return Validating, c.validating.Validate(ctx, attr, c.objects)
}
