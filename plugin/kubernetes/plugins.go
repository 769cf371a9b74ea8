// SPDX-License-Identifier: Apache-2.0

// Package kubernetes has admission plugins of kube-apiserver that need nothing of a cluster
// but the review, with their names, configurations, defaults and texts, a plugin in a file;
// PodSecurity has a package of its own.
// docs/plugins.md says where they differ.
package kubernetes

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
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
		AlwaysPullImages(),
		podsecurity.Plugin(),
		DefaultTolerationSeconds(),
		EventRateLimit(),
		ExtendedResourceToleration(),
		CertificateSubjectRestriction(),
		DenyServiceExternalIPs(),
	}, more...)
	return append(list, AlwaysDeny())
}

// nothing is the configuration of a plugin that has none.
type nothing struct{}

// unconfigured makes a plugin of a controller that has no configuration.
func unconfigured(name string, controller any, rules ...admissionregistrationv1.RuleWithOperations) plugin.Plugin {
	return plugin.New(name, rules, func(*nothing) (any, field.ErrorList) { return controller, nil })
}

// missing is the error of a review without the object that a plugin is about.
func missing(kind string) error { return fmt.Errorf("there is no %s in the review", kind) }
