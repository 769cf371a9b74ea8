// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/chain"
)

// Imported is what Import makes of a manifest.
type Imported struct {
	Manifest []byte    // the WebhookConfigurations, as YAML
	Notes    []Problem // what a person should know
	Problems []Problem // what could not be converted
}

// Import makes WebhookConfigurations of the Validating- and MutatingWebhookConfigurations
// of a manifest. What they leave to a default they still leave to it, but for v1beta1,
// whose defaults are others.
func Import(f File) Imported {
	d := decoder{strict: newStrict(), asWritten: true}
	d.file(f)
	out := Imported{Problems: d.problems}
	for _, u := range d.unread {
		out.Notes = append(out.Notes, u.Problem(nil, "", "is no webhook configuration: left out"))
	}
	for _, at := range d.objects.others() {
		out.Notes = append(out.Notes, at.Problem(nil, "", "is no webhook configuration: left out; the registry reads it from a ConfigMap that is labelled "+SourceLabel+`: "true"`))
	}
	list := d.objects.Configurations
	for i := range list {
		c := &list[i]
		if c.own {
			out.Notes = append(out.Notes, c.Problem(nil, "", "is a WebhookConfiguration already: left out"))
			continue
		}
		made := c.convert()
		if slices.ContainsFunc(list, func(o Configuration) bool { return !o.own && o.Phase != c.Phase && o.Meta.Name == c.Meta.Name }) {
			made.Name += "-" + strings.ToLower(made.Spec.Phase)
			out.Notes = append(out.Notes, c.Problem(field.NewPath("metadata", "name"), made.Name,
				"is its new name, because there is one of the other phase: bindings name its webhooks by it"))
		}
		if _, injected := made.Annotations[injectAnnotation]; injected {
			out.Notes = append(out.Notes, c.Problem(field.NewPath("metadata", "annotations").Key(injectAnnotation), "",
				"cert-manager injects no caBundle into a WebhookConfiguration: name the certificates with spec.caSecretRef or spec.caConfigMapRef"))
		}
		out.Problems = append(out.Problems, c.unconvertible()...)
		text, err := yaml.Marshal(made)
		if err != nil {
			out.Problems = append(out.Problems, plainProblem(c.Origin, err))
			continue
		}
		if len(out.Manifest) > 0 {
			out.Manifest = append(out.Manifest, "---\n"...)
		}
		out.Manifest = append(out.Manifest, bytes.TrimSpace(text)...)
		out.Manifest = append(out.Manifest, '\n')
	}
	if len(list) == 0 && len(out.Problems) == 0 {
		out.Problems = []Problem{{File: f.Name, Reason: "holds no webhook configuration"}}
	}
	return out
}

// SourceLabel of a ConfigMap says that it holds manifests for the registry.
const SourceLabel = "dispatcher.dev/source"

// MirrorLabel of a webhook configuration of a workload cluster, with the value "true", has
// it mirrored, if its Cluster allows it.
const MirrorLabel = "dispatcher.dev/mirror"

const (
	injectAnnotation  = "cert-manager.io/inject-ca-from"
	appliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"
)

// convert returns the configuration as a WebhookConfiguration, without what an API server
// and kubectl have added.
func (c *Configuration) convert() *v1alpha1.WebhookConfiguration {
	made := &v1alpha1.WebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: ownVersion, Kind: "WebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: c.Meta.Name, Labels: c.Meta.Labels},
		Spec:       v1alpha1.WebhookConfigurationSpec{Phase: v1alpha1.PhaseValidating, Webhooks: c.Webhooks},
	}
	for name, value := range c.Meta.Annotations {
		if name != appliedAnnotation {
			metav1.SetMetaDataAnnotation(&made.ObjectMeta, name, value)
		}
	}
	if c.Phase == chain.Mutating {
		made.Spec.Phase = v1alpha1.PhaseMutating
	}
	return made
}

// unconvertible reports what v1beta1 allows and a WebhookConfiguration does not.
func (c *Configuration) unconvertible() (problems []Problem) {
	for i := range c.Webhooks {
		s := c.Webhooks[i].SideEffects
		if c.Beta && (*s == admissionregistrationv1.SideEffectClassUnknown || *s == admissionregistrationv1.SideEffectClassSome) {
			problems = append(problems, c.Problem(c.Webhook(i).Child("sideEffects"), string(*s),
				fmt.Sprintf("v1beta1 alone has it: find out whether the webhook has side effects, and write %s or %s",
					admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.SideEffectClassNoneOnDryRun)))
		}
	}
	return problems
}

// others are the objects of the kinds of Kubernetes that are no webhook configurations.
func (o *Objects) others() []Origin {
	rest := *o
	rest.Configurations, rest.Clusters, rest.Bindings, rest.Plugins, rest.CustomResources = nil, nil, nil, nil, nil
	return rest.origins()
}
