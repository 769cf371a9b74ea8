// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/chain"
)

func (d *decoder) cluster(at Origin, doc []byte) error {
	var c v1alpha1.Cluster
	if err := d.into(doc, &c); err != nil {
		return err
	}
	d.refuse(at, c.References())
	d.objects.Clusters = append(d.objects.Clusters, Cluster{at, c})
	return nil
}

func (d *decoder) binding(at Origin, doc []byte) error {
	var b v1alpha1.WebhookBinding
	if err := d.into(doc, &b); err != nil {
		return err
	}
	d.refuse(at, b.References())
	d.objects.Bindings = append(d.objects.Bindings, Binding{at, b})
	return nil
}

// refuse reports references to Secrets and ConfigMaps, which the mirror of a Kubernetes
// API makes files of.
func (d *decoder) refuse(at Origin, refs []v1alpha1.Reference) {
	if d.inAPI {
		return
	}
	for i, r := range refs {
		if i > 0 && refs[i-1].Field == r.Field { // one Secret of several values
			continue
		}
		p := at.Problem(nil, "", fmt.Sprintf("a %s can be named by an object in a Kubernetes API alone: a manifest names a file", r.Kind))
		p.Field = r.Field
		d.problems = append(d.problems, p)
	}
}

// webhookConfiguration decodes what is one of the two of version v1 in all but its name.
func (d *decoder) webhookConfiguration(at Origin, doc []byte) error {
	var c v1alpha1.WebhookConfiguration
	if err := d.into(doc, &c); err != nil {
		return err
	}
	out := Configuration{Meta: c.ObjectMeta, Webhooks: c.Spec.Webhooks, own: true}
	switch c.Spec.Phase {
	case v1alpha1.PhaseMutating:
		out.Phase = chain.Mutating
	case v1alpha1.PhaseValidating:
		out.Phase = chain.Validating
		for i := range out.Webhooks {
			if out.Webhooks[i].ReinvocationPolicy != nil {
				d.problems = append(d.problems, at.Problem(out.Webhook(i).Child("reinvocationPolicy"), "", "is for mutating webhooks"))
			}
		}
	default:
		d.problems = append(d.problems, at.Problems(field.ErrorList{field.NotSupported(field.NewPath("spec", "phase"), c.Spec.Phase,
			[]string{v1alpha1.PhaseMutating, v1alpha1.PhaseValidating})})...)
	}
	d.refuse(at, c.References())
	d.configuration(at, false, out)
	return nil
}
