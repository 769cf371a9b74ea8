// SPDX-License-Identifier: Apache-2.0

// Package kubernetes has admission plugins of kube-apiserver and of OpenShift's API servers,
// with their names, configurations, defaults and texts, a plugin in a file; PodSecurity has a
// package of its own.
// docs/plugins.md says where they differ.
package kubernetes

import (
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/plugin/podsecurity"
)

// Plugins returns the plugins in the order in which kube-apiserver asks them, with more
// before those that it asks last.
func Plugins(more ...plugin.Plugin) []plugin.Plugin {
	list := append([]plugin.Plugin{
		AlwaysAdmit(),
		SecurityContextDeny(),
		LimitPodHardAntiAffinityTopology(),
		LimitRanger(),
		AlwaysPullImages(),
		podsecurity.Plugin(),
		PodNodeSelector(),
		Priority(),
		DefaultTolerationSeconds(),
		PodTolerationRestriction(),
		EventRateLimit(),
		ExtendedResourceToleration(),
		DefaultStorageClass(),
		OwnerReferencesPermissionEnforcement(),
		PersistentVolumeClaimResize(),
		RuntimeClass(),
		CertificateApproval(),
		CertificateSigning(),
		ClusterTrustBundleAttest(),
		CertificateSubjectRestriction(),
		DefaultIngressClass(),
		DenyServiceExternalIPs(),
		// OpenShift's API servers ask theirs here.
		ClusterResourceOverride(),
		RunOnceDuration(),
		PodNodeConstraints(),
		ExternalIPRanger(),
		FieldRestriction(),
	}, more...)
	return append(list, AlwaysDeny())
}

// nothing is the configuration of a plugin that has none.
type nothing struct{}

// unconfigured makes a plugin of a controller that has no configuration.
func unconfigured(name string, controller any, rules ...admissionregistrationv1.RuleWithOperations) plugin.Plugin {
	return plugin.New(name, rules, func(*nothing) (any, field.ErrorList) { return controller, nil })
}

// validateType checks what a configuration says of its type, which may be nothing.
func validateType(t metav1.TypeMeta, kind string, versions ...string) (errs field.ErrorList) {
	if t.APIVersion != "" && !slices.Contains(versions, t.APIVersion) {
		errs = append(errs, field.NotSupported(field.NewPath("apiVersion"), t.APIVersion, versions))
	}
	if t.Kind != "" && t.Kind != kind {
		errs = append(errs, field.NotSupported(field.NewPath("kind"), t.Kind, []string{kind}))
	}
	return errs
}

// missing is the error of a review without the object that a plugin is about.
func missing(kind string) error { return fmt.Errorf("there is no %s in the review", kind) }

// unknownNamespace is the error of a review in a namespace that is not stored, as far as the
// cluster's watch has come.
func unknownNamespace(a *plugin.Attributes) error {
	return fmt.Errorf("namespace %q is not known", a.Namespace())
}
