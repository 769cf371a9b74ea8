// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// DefaultTolerationSeconds gives pods that say nothing of nodes that are not ready, or not
// reachable, the time for which they stay there.
func DefaultTolerationSeconds() plugin.Plugin {
	return plugin.New("DefaultTolerationSeconds", podRules(), func(s *tolerationSeconds) (any, field.ErrorList) { return s, nil })
}

// defaultTolerationSeconds is kube-apiserver's default of both.
const defaultTolerationSeconds = 300

// tolerationSeconds is the configuration: the flags --default-not-ready-toleration-seconds
// and --default-unreachable-toleration-seconds of kube-apiserver. Any number is one there.
type tolerationSeconds struct {
	NotReady    *int64 `json:"notReadyTolerationSeconds,omitempty"`
	Unreachable *int64 `json:"unreachableTolerationSeconds,omitempty"`
}

func (s *tolerationSeconds) Mutate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	pod, err := podOf(a)
	if pod == nil {
		return plugin.Answer{}, err
	}
	tolerations := pod.Spec.Tolerations
	for _, taint := range []struct {
		key     string
		seconds *int64
	}{{corev1.TaintNodeNotReady, s.NotReady}, {corev1.TaintNodeUnreachable, s.Unreachable}} {
		if tolerates(pod.Spec.Tolerations, taint.key) {
			continue
		}
		seconds := int64(defaultTolerationSeconds)
		if taint.seconds != nil {
			seconds = *taint.seconds
		}
		tolerations = append(tolerations[:len(tolerations):len(tolerations)], corev1.Toleration{
			Key: taint.key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds,
		})
	}
	return withTolerations(pod, tolerations), nil
}

// tolerates reports whether the pod says something of the taint, whatever that is.
func tolerates(tolerations []corev1.Toleration, key string) bool {
	for _, t := range tolerations {
		if (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return true
		}
	}
	return false
}

// withTolerations is the answer that gives the pod these tolerations, of which the first are
// its own in their places. What it does not change it does not write, so that fields stay
// of which it does not know.
func withTolerations(pod *corev1.Pod, tolerations []corev1.Toleration) (answer plugin.Answer) {
	own := pod.Spec.Tolerations
	if len(own) == 0 && len(tolerations) > 0 {
		answer.Patch = []plugin.Operation{plugin.Add(tolerations, "spec", "tolerations")}
		return answer
	}
	for i, t := range tolerations {
		switch {
		case i >= len(own):
			answer.Patch = append(answer.Patch, plugin.Add(t, "spec", "tolerations", plugin.End))
		case t != own[i]:
			answer.Patch = append(answer.Patch, plugin.Replace(t, "spec", "tolerations", i))
		}
	}
	return answer
}
