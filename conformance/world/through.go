// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/conformance/caller"
)

// through returns the API server of a cluster that has the dispatcher as its only
// webhook, for everything.
func (c *Clusters) through(cluster string) (*caller.Caller, error) {
	certificate, key, err := c.world.authority.Issue(cluster)
	if err != nil {
		return nil, err
	}
	outer := func(phase string) []admissionregistrationv1.MutatingWebhook {
		return []admissionregistrationv1.MutatingWebhook{c.outer(cluster, phase)}
	}
	meta := metav1.ObjectMeta{Name: "dispatcher"}
	return caller.New(caller.Options{
		Authentication: caller.WithCertificate(c.world.authority.PEM, certificate, key),
		Objects:        objects,
		Mutating:       []admissionregistrationv1.MutatingWebhookConfiguration{{ObjectMeta: meta, Webhooks: outer("mutate")}},
		Validating:     []admissionregistrationv1.ValidatingWebhookConfiguration{{ObjectMeta: meta, Webhooks: caller.ValidatingOf(outer("validate"))}},
	})
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
