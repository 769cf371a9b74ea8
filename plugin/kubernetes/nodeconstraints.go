// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/plugin/podsecurity"
)

// PodNodeConstraints denies pods, and workloads, that name their node or select it by
// certain labels to those who have no right to bind pods: they could hit one node with as
// many pods as they like. It is OpenShift's.
func PodNodeConstraints() plugin.Plugin {
	const create, update = admissionregistrationv1.Create, admissionregistrationv1.Update
	p := plugin.New("PodNodeConstraints", []admissionregistrationv1.RuleWithOperations{
		plugin.Rule("", "v1", []string{"pods"}, create),
		plugin.Rule("", "v1", []string{"podtemplates", "replicationcontrollers"}, create, update),
		plugin.Rule("apps", "v1", []string{"deployments", "replicasets", "statefulsets"}, create, update),
		plugin.Rule("batch", "v1", []string{"cronjobs", "jobs"}, create, update),
		plugin.Rule(openShiftApps, "v1", []string{"deploymentconfigs"}, create, update),
	}, func(c *nodeConstraints) (any, field.ErrorList) {
		if c.Labels == nil {
			c.Labels = []string{corev1.LabelHostname}
		}
		return c, validateType(c.TypeMeta, "PodNodeConstraintsConfig", "v1", "scheduling.openshift.io/v1")
	})
	p.Authorizes = true
	return p
}

// nodeConstraints is the configuration, OpenShift's PodNodeConstraintsConfig.
type nodeConstraints struct {
	metav1.TypeMeta `json:",inline"`

	// Labels of nodes that may not be selected. Default: the node's name.
	Labels []string `json:"nodeSelectorLabelBlacklist"`
}

const openShiftApps = "apps.openshift.io"

func (c *nodeConstraints) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	spec, err := constrained(a)
	if spec == nil {
		return plugin.Answer{}, err
	}
	var labels []string
	for key := range spec.NodeSelector {
		if slices.Contains(c.Labels, key) {
			labels = append(labels, key)
		}
	}
	if spec.NodeName == "" && len(labels) == 0 {
		return plugin.Answer{}, nil
	}
	bind := &authorizationv1.ResourceAttributes{Verb: "create", Namespace: a.Namespace(), Resource: "pods", Subresource: "binding"}
	if a.Is("", "pods") {
		bind.Name = a.Name()
	}
	answer, err := mayUser(a, bind)
	if err != nil || answer.allowed {
		return plugin.Answer{}, err
	}
	slices.Sort(labels)
	switch {
	case len(labels) == 0:
		return a.Forbid("node selection by nodeName is prohibited by policy for your role"), nil
	case spec.NodeName == "":
		return a.Forbid("node selection by label(s) %v is prohibited by policy for your role", labels), nil
	}
	return a.Forbid("node selection by nodeName and label(s) %v is prohibited by policy for your role", labels), nil
}

// constrained returns what the request says of pods; nil: nothing that is constrained. A
// DaemonSet has a pod on each node, and pods stay where they are.
func constrained(a *plugin.Attributes) (*corev1.PodSpec, error) {
	switch operation := a.Operation(); {
	case operation != admissionv1.Create && operation != admissionv1.Update, a.Is("apps", "daemonsets"):
		return nil, nil //nolint:nilnil // there is none
	case a.Is("", "pods"):
		pod, err := podOf(a)
		if pod == nil || operation == admissionv1.Update {
			return nil, err
		}
		return &pod.Spec, nil
	}
	template, err := workloadTemplate(a)
	if template == nil {
		return nil, err
	}
	return &template.Spec, nil
}

// workloadTemplate returns the template of a workload, of OpenShift's too; nil: it has none.
func workloadTemplate(a *plugin.Attributes) (*corev1.PodTemplateSpec, error) {
	if !a.Is(openShiftApps, "deploymentconfigs") {
		return podsecurity.TemplateOf(a, a.Object())
	}
	config, err := plugin.Decode[deploymentConfig](a.Object())
	if config == nil {
		return nil, err
	}
	return config.Spec.Template, nil
}

// deploymentConfig is as much of OpenShift's as is constrained.
type deploymentConfig struct {
	Spec struct {
		Template *corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
}
