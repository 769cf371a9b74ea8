// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// AlwaysPullImages sets the pull policy of every container and image volume of a pod to
// Always, so that nobody runs an image that is on the node without a right to pull it. An
// update without an image that the old pod does not have is left as it is.
func AlwaysPullImages() plugin.Plugin {
	return unconfigured("AlwaysPullImages", pull{}, podRules()...)
}

type pull struct{}

// pullPolicy is the pull policy of a container or a volume, and where it stands.
type pullPolicy struct {
	path   []any
	policy corev1.PullPolicy
}

func (pull) Mutate(_ context.Context, a *plugin.Attributes) (answer plugin.Answer, err error) {
	others, err := pulledOtherwise(a)
	for _, p := range others {
		answer.Patch = append(answer.Patch, plugin.Add(corev1.PullAlways, p.path...))
	}
	return answer, err
}

func (pull) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	others, err := pulledOtherwise(a)
	if len(others) == 0 {
		return plugin.Answer{}, err
	}
	// kube-apiserver words each by itself, and puts brackets around more than one.
	answer, messages := plugin.Answer{}, make([]error, len(others))
	for i, p := range others {
		answer = a.Forbid("%w", field.NotSupported(fieldPath(p.path), p.policy, []corev1.PullPolicy{corev1.PullAlways}))
		messages[i] = errors.New(answer.Denied.Message)
	}
	answer.Denied.Message = utilerrors.NewAggregate(messages).Error()
	return answer, nil
}

// pulledOtherwise returns the pull policies of the pod that are not Always. There are none
// where the plugin has nothing to say.
func pulledOtherwise(a *plugin.Attributes) (others []pullPolicy, err error) {
	pod, err := podOf(a)
	if pod == nil {
		return nil, err
	}
	if a.Operation() == admissionv1.Update {
		old, err := plugin.Decode[corev1.Pod](a.OldObject())
		if err != nil {
			return nil, err
		}
		if old != nil && !hasNewImage(&pod.Spec, &old.Spec) {
			return nil, nil
		}
	}
	visitContainers(&pod.Spec, func(c *corev1.Container, path []any) {
		if c.ImagePullPolicy != corev1.PullAlways {
			others = append(others, pullPolicy{append(path, "imagePullPolicy"), c.ImagePullPolicy})
		}
	})
	for i, v := range pod.Spec.Volumes {
		if v.Image != nil && v.Image.PullPolicy != corev1.PullAlways {
			others = append(others, pullPolicy{[]any{"spec", "volumes", i, "image", "pullPolicy"}, v.Image.PullPolicy})
		}
	}
	return others, nil
}

func hasNewImage(now, before *corev1.PodSpec) (found bool) {
	known := map[string]bool{}
	visitContainers(before, func(c *corev1.Container, _ []any) { known[c.Image] = true })
	visitContainers(now, func(c *corev1.Container, _ []any) { found = found || !known[c.Image] })
	return found
}
