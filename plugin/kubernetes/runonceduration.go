// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"strconv"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// RunOnceDuration limits for how long pods run that end by themselves. It is OpenShift's.
func RunOnceDuration() plugin.Plugin {
	rules := []admissionregistrationv1.RuleWithOperations{plugin.Rule("", "v1", []string{"pods"}, "CREATE")}
	p := plugin.New("RunOnceDuration", rules, func(c *runOnceDuration) (any, field.ErrorList) {
		errs := validateType(c.TypeMeta, "RunOnceDurationConfig", "v1", "autoscaling.openshift.io/v1")
		if c.Limit != nil && *c.Limit <= 0 {
			errs = append(errs, field.Invalid(field.NewPath("activeDeadlineSecondsOverride"), *c.Limit, "must be greater than 0"))
		}
		return c, errs
	})
	p.Lists = []schema.GroupVersionResource{namespaces}
	return p
}

// runOnceDuration is the configuration, OpenShift's RunOnceDurationConfig.
type runOnceDuration struct {
	metav1.TypeMeta `json:",inline"`

	// Limit in seconds, where the namespace has none of its own. Default: none.
	Limit *int64 `json:"activeDeadlineSecondsOverride,omitempty"`
}

// durationAnnotation is a namespace's own limit, in place of the one that is configured.
const durationAnnotation = "openshift.io/active-deadline-seconds-override"

func (c *runOnceDuration) Mutate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	if a.Operation() != admissionv1.Create {
		return plugin.Answer{}, nil
	}
	pod, err := podOf(a)
	if pod == nil || pod.Spec.RestartPolicy != corev1.RestartPolicyNever && pod.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		return plugin.Answer{}, err
	}
	namespace, err := namespaceOf(a)
	if err != nil {
		return plugin.Answer{}, err
	}
	if namespace == nil {
		return plugin.Answer{}, unknownNamespace(a)
	}
	limit := c.Limit
	if text, ok := namespace.Annotations[durationAnnotation]; ok {
		own, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return a.Forbid("cannot parse the ActiveDeadlineSeconds limit (%s) for project %s: %w", text, namespace.Name, err), nil
		}
		limit = &own
	}
	if limit == nil || pod.Spec.ActiveDeadlineSeconds != nil && *pod.Spec.ActiveDeadlineSeconds <= *limit {
		return plugin.Answer{}, nil
	}
	return plugin.Answer{Patch: []plugin.Operation{plugin.Add(*limit, "spec", "activeDeadlineSeconds")}}, nil
}
