// SPDX-License-Identifier: Apache-2.0

package podsecurity

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// podsUnchecked stands where kube-apiserver lists the pods that a stricter level would deny:
// the tier has no list of them.
const podsUnchecked = "existing pods in namespace %q were not checked against the new PodSecurity enforce level %q"

// namespace denies labels that say nothing, and warns about those that change too much or
// nothing.
func (c *controller) namespace(a *plugin.Attributes) (plugin.Answer, error) {
	operation := a.Operation()
	if a.Subresource() != "" || operation != admissionv1.Create && operation != admissionv1.Update {
		return plugin.Answer{}, nil
	}
	namespace, err := plugin.Decode[corev1.Namespace](a.Object())
	if err != nil {
		return plugin.Answer{}, err
	}
	if namespace == nil {
		return badRequest("failed to decode object"), nil
	}
	wanted, invalid := api.PolicyToEvaluate(namespace.Labels, c.defaults)
	if operation == admissionv1.Create {
		if len(invalid) > 0 {
			return invalidLabels(a, invalid), nil
		}
		return c.namespaceExempt(a, namespace, wanted), nil
	}
	old, err := plugin.Decode[corev1.Namespace](a.OldObject())
	if err != nil {
		return plugin.Answer{}, err
	}
	if old == nil {
		return badRequest("failed to decode old object"), nil
	}
	before, wasInvalid := api.PolicyToEvaluate(old.Labels, c.defaults)
	switch {
	case len(invalid) > 0 && !reflect.DeepEqual(invalid, wasInvalid):
		return invalidLabels(a, invalid), nil
	case wanted.Enforce == before.Enforce, wanted.Enforce.Level == api.LevelPrivileged,
		wanted.Enforce.Version == before.Enforce.Version && api.CompareLevels(wanted.Enforce.Level, before.Enforce.Level) < 1:
		return plugin.Answer{}, nil // no pod is denied that was not before
	case slices.Contains(c.exemptions.Namespaces, a.Namespace()):
		return c.namespaceExempt(a, namespace, wanted), nil
	}
	return plugin.Answer{Warnings: []string{fmt.Sprintf(podsUnchecked, namespace.Name, wanted.Enforce.String())}}, nil
}

func invalidLabels(a *plugin.Attributes, errs field.ErrorList) plugin.Answer {
	status := apierrors.NewInvalid(a.Kind().GroupKind(), a.Name(), errs).Status()
	return plugin.Answer{Denied: &status}
}

// namespaceExempt warns that the labels of an exempt namespace have no effect.
func (c *controller) namespaceExempt(a *plugin.Attributes, n *corev1.Namespace, wanted api.Policy) plugin.Answer {
	if !slices.Contains(c.exemptions.Namespaces, a.Namespace()) || wanted.FullyPrivileged() || wanted.Equivalent(&c.defaults) {
		return plugin.Answer{}
	}
	var set []string
	for _, mode := range []struct {
		name, level, version string
		wanted               api.LevelVersion
	}{
		{"enforce", api.EnforceLevelLabel, api.EnforceVersionLabel, wanted.Enforce},
		{"audit", api.AuditLevelLabel, api.AuditVersionLabel, wanted.Audit},
		{"warn", api.WarnLevelLabel, api.WarnVersionLabel, wanted.Warn},
	} {
		_, hasLevel := n.Labels[mode.level]
		_, hasVersion := n.Labels[mode.version]
		if mode.wanted.Level != api.LevelPrivileged && (hasLevel || hasVersion) {
			set = append(set, mode.name+"="+mode.wanted.String())
		}
	}
	return plugin.Answer{Warnings: []string{fmt.Sprintf(
		"namespace %q is exempt from Pod Security, and the policy (%s) will be ignored", n.Name, strings.Join(set, ", "))}}
}
