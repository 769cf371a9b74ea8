// SPDX-License-Identifier: Apache-2.0

// Package podsecurity is the admission plugin PodSecurity: the Pod Security Standards, by
// the labels of namespaces, with kube-apiserver's configuration, texts and annotations.
// The checks are those of k8s.io/pod-security-admission/policy; its admission package, which
// needs a clientset, is what tests compare with.
package podsecurity

import (
	"context"
	"slices"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// Plugin returns the plugin.
func Plugin() plugin.Plugin {
	p := plugin.New("PodSecurity", rules(), func(c *Configuration) (any, field.ErrorList) { return New(*c) })
	p.NamespaceLabels = []string{
		api.EnforceLevelLabel, api.EnforceVersionLabel, api.AuditLevelLabel, api.AuditVersionLabel, api.WarnLevelLabel, api.WarnVersionLabel,
	}
	return p
}

// New returns the plugin with a configuration, or what is wrong with that.
func New(c Configuration) (plugin.Validator, field.ErrorList) {
	c.setDefaults()
	if errs := c.validate(); len(errs) > 0 {
		return nil, errs
	}
	return &controller{defaults: c.Defaults.policy(), exemptions: c.Exemptions}, nil
}

// rules are what changes pods, what has templates of pods, and namespaces, of which the
// labels must be good.
func rules() []admissionregistrationv1.RuleWithOperations {
	const create, update = admissionregistrationv1.Create, admissionregistrationv1.Update
	return []admissionregistrationv1.RuleWithOperations{
		plugin.Rule("", "v1", []string{"namespaces", "pods", "pods/ephemeralcontainers", "pods/resize", "podtemplates", "replicationcontrollers"}, create, update),
		plugin.Rule("apps", "v1", []string{"daemonsets", "deployments", "replicasets", "statefulsets"}, create, update),
		plugin.Rule("batch", "v1", []string{"cronjobs", "jobs"}, create, update),
	}
}

// controller is the plugin with a configuration.
type controller struct {
	defaults   api.Policy
	exemptions Exemptions
	evaluators sync.Map // of policy.Evaluator by minor version: of Kubernetes there are few
}

// Validate implements plugin.Validator.
func (c *controller) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	r := a.Resource()
	switch {
	case r.Group == "" && r.Resource == "namespaces":
		return c.namespace(a)
	case r.Group == "" && r.Resource == "pods":
		return c.pod(a)
	case templates[r.GroupResource()] != nil:
		return c.workload(a)
	}
	return plugin.Answer{}, nil
}

// exempt returns what exempts a request about pods, or "".
func (c *controller) exempt(a *plugin.Attributes) string {
	switch user := a.User().Username; {
	case a.Namespace() != "" && slices.Contains(c.exemptions.Namespaces, a.Namespace()):
		return "namespace"
	case user != "" && slices.Contains(c.exemptions.Usernames, user):
		return "user"
	}
	return ""
}

// exempted is the answer for what is exempt.
func exempted(reason string) plugin.Answer {
	return plugin.Answer{Annotations: map[string]string{api.ExemptionReasonAnnotationKey: reason}}
}

// evaluator returns the checks as an API server of the cluster's version has them: what
// "latest" means there, and all that is later. Of a version that is not known it is ours.
func (c *controller) evaluator(a *plugin.Attributes) (policy.Evaluator, error) {
	major, minor := a.KubernetesVersion()
	if major != 1 {
		minor = -1
	}
	minor = min(minor, maxMinor)
	if known, ok := c.evaluators.Load(minor); ok {
		return known.(policy.Evaluator), nil
	}
	var emulated *api.Version
	if minor >= 0 {
		emulated = new(api.MajorMinorVersion(1, minor))
	}
	made, err := policy.NewEvaluator(policy.DefaultChecks(), emulated)
	if err != nil {
		return nil, err
	}
	c.evaluators.Store(minor, made)
	return made, nil
}

// maxMinor is above all versions of which the checks know.
const maxMinor = 1000
