// SPDX-License-Identifier: Apache-2.0

package podsecurity

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// errorKey is the annotation of what kept the plugin from checking.
const errorKey = "error"

// unchecked are the subresources of a pod that have no pod. What is not among them is
// checked: a subresource of a later version may change the pod.
var unchecked = []string{"attach", "binding", "eviction", "exec", "log", "portforward", "proxy", "status"}

// pod checks a pod by all three levels of its namespace.
func (c *controller) pod(a *plugin.Attributes) (plugin.Answer, error) {
	if slices.Contains(unchecked, a.Subresource()) {
		return plugin.Answer{}, nil
	}
	if reason := c.exempt(a); reason != "" {
		return exempted(reason), nil
	}
	labels, err := a.NamespaceLabels()
	if err != nil {
		status := apierrors.NewInternalError(fmt.Errorf("failed to lookup namespace %q", a.Namespace())).Status()
		return plugin.Answer{Denied: &status, Annotations: map[string]string{errorKey: fmt.Sprintf("%s: %v", status.Message, err)}}, nil
	}
	wanted, invalid := api.PolicyToEvaluate(labels, c.defaults)
	if len(invalid) == 0 && wanted.FullyPrivileged() {
		privileged := api.LevelVersion{Level: api.LevelPrivileged, Version: api.LatestVersion()}
		return plugin.Answer{Annotations: map[string]string{api.EnforcedPolicyAnnotationKey: privileged.String()}}, nil
	}
	pod, err := plugin.Decode[corev1.Pod](a.Object())
	if err != nil {
		return plugin.Answer{}, err
	}
	if pod == nil {
		return badRequest("failed to decode object"), nil
	}
	if a.Operation() == admissionv1.Update {
		old, err := plugin.Decode[corev1.Pod](a.OldObject())
		if err != nil {
			return plugin.Answer{}, err
		}
		if old == nil {
			return badRequest("failed to decode old object"), nil
		}
		if !isSignificant(&pod.Spec, &old.Spec) {
			return plugin.Answer{}, nil
		}
	}
	return c.evaluate(a, subject{wanted, invalid.ToAggregate(), &pod.ObjectMeta, &pod.Spec, true})
}

func badRequest(message string) plugin.Answer {
	status := apierrors.NewBadRequest(message).Status()
	return plugin.Answer{Denied: &status, Annotations: map[string]string{errorKey: message}}
}

// subject is a pod, or a template of one, and what it is checked by.
type subject struct {
	wanted   api.Policy
	invalid  error // of the labels that say it
	metadata *metav1.ObjectMeta
	spec     *corev1.PodSpec
	enforce  bool
}

// evaluate checks each level once. A request that is denied gets no warnings.
func (c *controller) evaluate(a *plugin.Attributes, s subject) (plugin.Answer, error) {
	if class := s.spec.RuntimeClassName; class != nil && *class != "" && slices.Contains(c.exemptions.RuntimeClasses, *class) {
		return exempted("runtimeClass"), nil
	}
	evaluator, err := c.evaluator(a)
	if err != nil {
		return plugin.Answer{}, err
	}
	results := map[api.LevelVersion]policy.AggregateCheckResult{}
	check := func(by api.LevelVersion) policy.AggregateCheckResult {
		result, known := results[by]
		if !known {
			result = policy.AggregateCheckResults(evaluator.EvaluatePod(by, s.metadata, s.spec))
			results[by] = result
		}
		return result
	}
	answer := plugin.Answer{Annotations: map[string]string{}}
	if s.invalid != nil {
		answer.Annotations[errorKey] = fmt.Sprintf("Failed to parse policy: %v", s.invalid)
	}
	if s.enforce {
		answer.Annotations[api.EnforcedPolicyAnnotationKey] = s.wanted.Enforce.String()
		if result := check(s.wanted.Enforce); !result.Allowed {
			status := apierrors.NewForbidden(a.Resource().GroupResource(), a.Name(),
				fmt.Errorf("violates PodSecurity %q: %s", s.wanted.Enforce.String(), result.ForbiddenDetail())).Status()
			answer.Denied = &status
		}
	}
	if result := check(s.wanted.Audit); !result.Allowed {
		answer.Annotations[api.AuditViolationsAnnotationKey] = violation(s.wanted.Audit, &result)
	}
	if answer.Denied != nil {
		return answer, nil
	}
	if result := check(s.wanted.Warn); !result.Allowed {
		answer.Warnings = []string{violation(s.wanted.Warn, &result)}
	}
	return answer, nil
}

func violation(of api.LevelVersion, result *policy.AggregateCheckResult) string {
	return fmt.Sprintf("would violate PodSecurity %q: %s", of.String(), result.ForbiddenDetail())
}

// isSignificant reports whether an update of a pod changes what is checked and may change:
// its containers, or their images.
func isSignificant(now, before *corev1.PodSpec) bool {
	if len(now.Containers) != len(before.Containers) || len(now.InitContainers) != len(before.InitContainers) {
		return true
	}
	for i := range now.Containers {
		if now.Containers[i].Image != before.Containers[i].Image {
			return true
		}
	}
	for i := range now.InitContainers {
		if now.InitContainers[i].Image != before.InitContainers[i].Image {
			return true
		}
	}
	return slices.ContainsFunc(now.EphemeralContainers, func(c corev1.EphemeralContainer) bool {
		i := slices.IndexFunc(before.EphemeralContainers, func(b corev1.EphemeralContainer) bool { return b.Name == c.Name })
		return i < 0 || before.EphemeralContainers[i].Image != c.Image
	})
}
