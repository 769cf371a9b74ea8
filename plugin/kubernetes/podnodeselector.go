// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// PodNodeSelector gives pods the node selector of their namespace, and denies those that
// select other nodes: a team stays on its nodes.
func PodNodeSelector() plugin.Plugin {
	p := plugin.New("PodNodeSelector", created("pods"), newNodeSelectors)
	p.Lists = []schema.GroupVersionResource{namespaces}
	return p
}

// nodeSelectorConfiguration is kube-apiserver's: under the name of a namespace the labels by
// which its pods may select, and under clusterDefault the node selector of namespaces
// without the annotation.
type nodeSelectorConfiguration struct {
	Selectors map[string]string `json:"podNodeSelectorPluginConfig"`
}

const (
	clusterDefault         = "clusterDefaultNodeSelector"
	nodeSelectorAnnotation = "scheduler.alpha.kubernetes.io/node-selector"
)

// nodeSelectors is the plugin.
type nodeSelectors struct {
	byDefault  labels.Set
	whitelists map[string]labels.Set // by namespace
}

func newNodeSelectors(c *nodeSelectorConfiguration) (made any, errs field.ErrorList) {
	s := nodeSelectors{whitelists: map[string]labels.Set{}}
	for _, key := range slices.Sorted(maps.Keys(c.Selectors)) {
		at := field.NewPath("podNodeSelectorPluginConfig").Key(key)
		selector, err := labels.ConvertSelectorToLabelsMap(c.Selectors[key], field.WithPath(at))
		wrong, ofField := errors.AsType[*field.Error](err)
		switch {
		case ofField:
			errs = append(errs, wrong)
		case err != nil:
			errs = append(errs, field.Invalid(at, c.Selectors[key], err.Error()))
		case key == clusterDefault:
			s.byDefault = selector
		default:
			s.whitelists[key] = selector
		}
	}
	return s, errs
}

func (s nodeSelectors) Mutate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	pod, given, answer, err := s.ask(a)
	if pod == nil || answer.Denied != nil {
		return answer, err
	}
	if answer = s.whitelisted(a, pod, labels.Merge(given, pod.Spec.NodeSelector)); answer.Denied == nil {
		answer.Patch = addEntries(pod.Spec.NodeSelector, given, "spec", "nodeSelector")
	}
	return answer, nil
}

func (s nodeSelectors) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	pod, _, answer, err := s.ask(a)
	if pod == nil || answer.Denied != nil {
		return answer, err
	}
	return s.whitelisted(a, pod, pod.Spec.NodeSelector), nil
}

// ask returns the pod, and what its namespace has it select, or a denial. The pod is nil
// where the plugin has nothing to say.
func (s nodeSelectors) ask(a *plugin.Attributes) (pod *corev1.Pod, given labels.Set, answer plugin.Answer, err error) {
	if a.Operation() != admissionv1.Create {
		return nil, nil, answer, nil
	}
	if pod, err = podOf(a); pod == nil {
		return nil, nil, answer, err
	}
	namespace, err := namespaceOf(a)
	if err != nil {
		return nil, nil, answer, err
	}
	if namespace == nil {
		status := apierrors.NewInternalError(fmt.Errorf("namespace %s does not exist", a.Namespace())).Status()
		return pod, nil, plugin.Answer{Denied: &status}, nil
	}
	given = s.byDefault
	if selector, ok := namespace.Annotations[nodeSelectorAnnotation]; ok {
		if given, err = labels.ConvertSelectorToLabelsMap(selector); err != nil {
			return pod, nil, denied(err), nil
		}
	}
	if labels.Conflicts(given, labels.Set(pod.Spec.NodeSelector)) {
		answer = forbidPod(a, pod, errConflict)
	}
	return pod, given, answer, nil
}

var (
	errConflict    = errors.New("pod node label selector conflicts with its namespace node label selector")
	errWhitelisted = errors.New("pod node label selector labels conflict with its namespace whitelist")
)

// whitelisted denies a pod that selects by other labels than the configuration has for its
// namespace. None there: anything may be selected.
func (s nodeSelectors) whitelisted(a *plugin.Attributes, pod *corev1.Pod, selected labels.Set) plugin.Answer {
	whitelist := s.whitelists[a.Namespace()]
	if len(whitelist) == 0 {
		return plugin.Answer{}
	}
	for key, value := range selected {
		if listed, ok := whitelist[key]; !ok || listed != value {
			return forbidPod(a, pod, errWhitelisted)
		}
	}
	return plugin.Answer{}
}

// forbidPod denies in kube-apiserver's words, with the name that the pod itself has.
func forbidPod(a *plugin.Attributes, pod *corev1.Pod, err error) plugin.Answer {
	status := apierrors.NewForbidden(a.Resource().GroupResource(), pod.Name, err).Status()
	return plugin.Answer{Denied: &status}
}

// denied denies with nothing but the text, where kube-apiserver's plugin returns an error
// that is no status: its code is 500 there.
func denied(err error) plugin.Answer {
	return plugin.Answer{Denied: &metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: err.Error()}}
}
