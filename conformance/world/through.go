// SPDX-License-Identifier: Apache-2.0

package world

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/conformance/caller"
)

// through returns the API server of a cluster that has the dispatcher as its only
// webhook: as the dispatcher prints it, or for everything. It returns as well how many
// paths that is in the validating phase.
func (c *Clusters) through(ctx context.Context, index int) (through *caller.Caller, paths int, err error) {
	cluster, this := c.names[index], &c.cases[index]
	certificate, key, err := c.world.authority.Issue(cluster)
	if err != nil {
		return nil, 0, err
	}
	options := caller.Options{
		Namespaces:     namespaces(this.Namespaces),
		Authentication: caller.WithCertificate(c.world.authority.PEM, certificate, key),
		Objects:        objects,
	}
	if this.Registered {
		err = c.registered(ctx, cluster, &options)
	} else {
		meta := metav1.ObjectMeta{Name: "dispatcher"}
		outer := func(phase string) []admissionregistrationv1.MutatingWebhook {
			return []admissionregistrationv1.MutatingWebhook{c.outer(cluster, phase)}
		}
		options.Mutating = []admissionregistrationv1.MutatingWebhookConfiguration{{ObjectMeta: meta, Webhooks: outer("mutate")}}
		options.Validating = []admissionregistrationv1.ValidatingWebhookConfiguration{{ObjectMeta: meta, Webhooks: caller.ValidatingOf(outer("validate"))}}
	}
	if err != nil {
		return nil, 0, err
	}
	urls := map[string]bool{}
	for _, v := range options.Validating {
		for _, w := range v.Webhooks {
			urls[*w.ClientConfig.URL] = true
		}
	}
	through, err = caller.New(options)
	return through, len(urls), err
}

// registered fills in what the dispatcher prints for the cluster.
func (c *Clusters) registered(ctx context.Context, cluster string, options *caller.Options) error {
	printed, err := c.process.Registration(ctx, cluster)
	if err != nil {
		return err
	}
	decoder := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(printed)))
	for {
		document, err := decoder.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var meta metav1.TypeMeta
		if err := sigsyaml.Unmarshal(document, &meta); err != nil {
			return fmt.Errorf("%w in\n%s", err, document)
		}
		switch meta.Kind {
		case "MutatingWebhookConfiguration":
			var m admissionregistrationv1.MutatingWebhookConfiguration
			if err := sigsyaml.UnmarshalStrict(document, &m); err != nil {
				return fmt.Errorf("%w in\n%s", err, document)
			}
			options.Mutating = append(options.Mutating, m)
		case "ValidatingWebhookConfiguration":
			var v admissionregistrationv1.ValidatingWebhookConfiguration
			if err := sigsyaml.UnmarshalStrict(document, &v); err != nil {
				return fmt.Errorf("%w in\n%s", err, document)
			}
			options.Validating = append(options.Validating, v)
		case "": // comments only: nobody wants anything in the phase
		default:
			return fmt.Errorf("the registration has a %s:\n%s", meta.Kind, document)
		}
	}
}

// outer registers the dispatcher as a cluster does, but for everything.
func (c *Clusters) outer(cluster, phase string) admissionregistrationv1.MutatingWebhook {
	var (
		url          = fmt.Sprintf("%s/v1/clusters/%s/%s", c.process.URL, cluster, phase)
		fail         = admissionregistrationv1.Fail
		equivalent   = admissionregistrationv1.Equivalent
		noneOnDryRun = admissionregistrationv1.SideEffectClassNoneOnDryRun
		never        = admissionregistrationv1.NeverReinvocationPolicy
		scope        = admissionregistrationv1.AllScopes
		timeout      = int32(30)
	)
	return admissionregistrationv1.MutatingWebhook{
		Name:         phase + ".dispatcher.example.com",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: c.world.authority.PEM},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}, Scope: &scope},
		}},
		FailurePolicy:           &fail,
		MatchPolicy:             &equivalent,
		NamespaceSelector:       &metav1.LabelSelector{},
		ObjectSelector:          &metav1.LabelSelector{},
		SideEffects:             &noneOnDryRun,
		TimeoutSeconds:          &timeout,
		AdmissionReviewVersions: []string{"v1"},
		ReinvocationPolicy:      &never,
	}
}
