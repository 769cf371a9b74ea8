// SPDX-License-Identifier: Apache-2.0

package podsecurity

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/pod-security-admission/api"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// template returns the template of the pods that the object makes; nil: it has none.
type template func(o plugin.Object) (*corev1.PodTemplateSpec, error)

// templateOf has an object decoded as a T.
func templateOf[T any](of func(*T) *corev1.PodTemplateSpec) template {
	return func(o plugin.Object) (*corev1.PodTemplateSpec, error) {
		decoded, err := plugin.Decode[T](o)
		if err != nil || decoded == nil {
			return nil, err
		}
		return of(decoded), nil
	}
}

// templates are the workloads that have one.
var templates = map[schema.GroupResource]template{
	corev1.Resource("podtemplates"):           templateOf(func(o *corev1.PodTemplate) *corev1.PodTemplateSpec { return &o.Template }),
	corev1.Resource("replicationcontrollers"): templateOf(func(o *corev1.ReplicationController) *corev1.PodTemplateSpec { return o.Spec.Template }),
	appsv1.Resource("replicasets"):            templateOf(func(o *appsv1.ReplicaSet) *corev1.PodTemplateSpec { return &o.Spec.Template }),
	appsv1.Resource("deployments"):            templateOf(func(o *appsv1.Deployment) *corev1.PodTemplateSpec { return &o.Spec.Template }),
	appsv1.Resource("statefulsets"):           templateOf(func(o *appsv1.StatefulSet) *corev1.PodTemplateSpec { return &o.Spec.Template }),
	appsv1.Resource("daemonsets"):             templateOf(func(o *appsv1.DaemonSet) *corev1.PodTemplateSpec { return &o.Spec.Template }),
	batchv1.Resource("jobs"):                  templateOf(func(o *batchv1.Job) *corev1.PodTemplateSpec { return &o.Spec.Template }),
	batchv1.Resource("cronjobs"):              templateOf(func(o *batchv1.CronJob) *corev1.PodTemplateSpec { return &o.Spec.JobTemplate.Spec.Template }),
}

// TemplateOf returns the template of the pods that the request's object, or its old one,
// makes; nil: it makes none. Nobody may write to it.
func TemplateOf(a *plugin.Attributes, o plugin.Object) (*corev1.PodTemplateSpec, error) {
	of := templates[a.Resource().GroupResource()]
	if of == nil || a.Subresource() != "" {
		return nil, nil //nolint:nilnil // there is none
	}
	return of(o)
}

// workload warns and annotates: what is enforced is enforced of the pods. Nothing that goes
// wrong denies.
func (c *controller) workload(a *plugin.Attributes) (plugin.Answer, error) {
	if a.Subresource() != "" {
		return plugin.Answer{}, nil
	}
	if reason := c.exempt(a); reason != "" {
		return exempted(reason), nil
	}
	labels, err := a.NamespaceLabels()
	if err != nil {
		return unjudged(fmt.Sprintf("failed to lookup namespace %q: %v", a.Namespace(), err)), nil
	}
	wanted, invalid := api.PolicyToEvaluate(labels, c.defaults)
	if len(invalid) == 0 && wanted.Warn.Level == api.LevelPrivileged && wanted.Audit.Level == api.LevelPrivileged {
		return plugin.Answer{}, nil
	}
	pods, err := templates[a.Resource().GroupResource()](a.Object())
	if err != nil {
		return unjudged(fmt.Sprintf("failed to decode object: %v", err)), nil
	}
	if pods == nil {
		return plugin.Answer{}, nil
	}
	return c.evaluate(a, subject{wanted, invalid.ToAggregate(), &pods.ObjectMeta, &pods.Spec, false})
}

// unjudged is the answer where a workload could not be checked.
func unjudged(why string) plugin.Answer {
	return plugin.Answer{Annotations: map[string]string{errorKey: why}}
}
