// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// Controller is somebody who writes a webhook configuration again, or whose webhook is
// not to be adopted for another reason.
type Controller struct {
	Name   string
	Reason string // why its configurations are not adopted
	// Instead is what to do.
	Instead string

	writes func(metav1.Object) bool
}

const (
	rewrites = "writes the configuration again at runtime: a patch does not last, and a copy of it grows old"
	rotates  = "writes caBundle again when it renews the certificate: a copy of the configuration grows old, and every call fails"
	mirrorIt = "let the cluster's object take part as it is: label it " + manifest.MirrorLabel + `: "true" by the settings of its owner, and set spec.mirror of the Cluster`
)

// Controllers returns those who are known, in the order in which they are looked for.
// docs/adopt.md has the same table.
func Controllers() []Controller {
	return []Controller{
		{"Kyverno", rewrites + ", with every policy", mirrorIt, either(labelled("webhook.kyverno.io/managed-by"), named("kyverno-"))},
		{"Gatekeeper", rotates + "; its policies read objects of its own cluster", mirrorIt, either(labelled("gatekeeper.sh/system"), named("gatekeeper-"))},
		{"cert-manager's cainjector", rotates, mirrorIt, annotated("cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca")},
		{"OpenShift's service CA", rotates, mirrorIt, annotated("service.beta.openshift.io/inject-cabundle")},
		{"Istio", rotates + "; each revision has one", mirrorIt, either(labelled("istio.io/rev"), named("istio-"))},
		{"the Operator Lifecycle Manager", rewrites, mirrorIt, labelled("olm.owner")},
		{"the addon manager of a managed cluster", rewrites, "leave it to the provider", labelled("addonmanager.kubernetes.io/mode")},
		{"AKS", rewrites, "leave it to the provider", labelled("kubernetes.azure.com/managedby")},
		{"the owner in ownerReferences", rewrites, mirrorIt, func(o metav1.Object) bool { return len(o.GetOwnerReferences()) > 0 }},
	}
}

// ControllerOf returns who writes a configuration again; nil: nobody who is known.
func ControllerOf(o metav1.Object) *Controller {
	all := Controllers()
	if i := slices.IndexFunc(all, func(c Controller) bool { return c.writes(o) }); i >= 0 {
		return &all[i]
	}
	return nil
}

func either(tests ...func(metav1.Object) bool) func(metav1.Object) bool {
	return func(o metav1.Object) bool {
		return slices.ContainsFunc(tests, func(test func(metav1.Object) bool) bool { return test(o) })
	}
}

func labelled(key string) func(metav1.Object) bool {
	return func(o metav1.Object) bool { _, ok := o.GetLabels()[key]; return ok }
}

func annotated(keys ...string) func(metav1.Object) bool {
	return func(o metav1.Object) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return o.GetAnnotations()[key] != "" })
	}
}

func named(prefix string) func(metav1.Object) bool {
	return func(o metav1.Object) bool { return strings.HasPrefix(o.GetName(), prefix) }
}
