// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/admission-dispatcher/dispatcher/plugin"
)

// Priority gives new pods the number and the preemption policy of their PriorityClass, and
// lets one PriorityClass be the default.
func Priority() plugin.Plugin {
	p := unconfigured("Priority", priority{}, append(podRules(), plugin.Rule(schedulingv1.GroupName, "v1", []string{"priorityclasses"}, "CREATE", "UPDATE"))...)
	p.Lists = append(p.Lists, priorityClasses)
	return p
}

var priorityClasses = schedulingv1.SchemeGroupVersion.WithResource("priorityclasses")

type priority struct{}

func (priority) Mutate(_ context.Context, a *plugin.Attributes) (answer plugin.Answer, err error) {
	pod, err := podOf(a)
	if pod == nil {
		return answer, err
	}
	if a.Operation() == admissionv1.Update {
		return keepPriority(a, pod)
	}
	class, answer, err := classOfPod(a, pod)
	if class == nil {
		return answer, err
	}
	own := &pod.Spec
	if own.Priority != nil && *own.Priority != class.Value {
		return a.Forbid("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name",
			*own.Priority, class.Value), nil
	}
	policy := class.PreemptionPolicy
	if policy != nil && own.PreemptionPolicy != nil && *own.PreemptionPolicy != *policy {
		return a.Forbid("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name",
			*own.PreemptionPolicy, *policy), nil
	}
	if own.PriorityClassName != class.Name {
		answer.Patch = append(answer.Patch, plugin.Add(class.Name, "spec", "priorityClassName"))
	}
	if own.Priority == nil {
		answer.Patch = append(answer.Patch, plugin.Add(class.Value, "spec", "priority"))
	}
	if policy != nil && own.PreemptionPolicy == nil {
		answer.Patch = append(answer.Patch, plugin.Add(*policy, "spec", "preemptionPolicy"))
	}
	return answer, nil
}

// keepPriority keeps what the pod has been given when it was created.
func keepPriority(a *plugin.Attributes, pod *corev1.Pod) (answer plugin.Answer, err error) {
	old, err := plugin.Decode[corev1.Pod](a.OldObject())
	if err != nil {
		return answer, err
	}
	if old == nil {
		return answer, missing("old Pod")
	}
	if pod.Spec.Priority == nil && old.Spec.Priority != nil {
		answer.Patch = append(answer.Patch, plugin.Add(*old.Spec.Priority, "spec", "priority"))
	}
	if pod.Spec.PreemptionPolicy == nil && old.Spec.PreemptionPolicy != nil {
		answer.Patch = append(answer.Patch, plugin.Add(*old.Spec.PreemptionPolicy, "spec", "preemptionPolicy"))
	}
	return answer, nil
}

// classOfPod returns the PriorityClass that the pod names, or the default one, or what stands
// for that where there is none, or a denial.
func classOfPod(a *plugin.Attributes, pod *corev1.Pod) (class *schedulingv1.PriorityClass, answer plugin.Answer, err error) {
	if name := pod.Spec.PriorityClassName; name != "" {
		class, err = plugin.Get[schedulingv1.PriorityClass](a, priorityClasses, "", name)
		if err == nil && class == nil {
			answer = a.Forbid("no PriorityClass with name %v was found", name)
		}
		return class, answer, err
	}
	class, err = defaultPriorityClass(a)
	if err == nil && class == nil {
		class = &schedulingv1.PriorityClass{PreemptionPolicy: new(corev1.PreemptLowerPriority)}
	}
	return class, answer, err
}

// defaultPriorityClass returns the PriorityClass that is the default, and of several the one
// of the lowest value, which several may have: then the first by name; nil: there is none.
func defaultPriorityClass(a *plugin.Attributes) (lowest *schedulingv1.PriorityClass, err error) {
	classes, err := plugin.List[schedulingv1.PriorityClass](a, priorityClasses, "")
	for _, class := range classes {
		if class.GlobalDefault && (lowest == nil || class.Value < lowest.Value) {
			lowest = class
		}
	}
	return lowest, err
}

func (priority) Validate(_ context.Context, a *plugin.Attributes) (plugin.Answer, error) {
	if o := a.Operation(); !a.Is(schedulingv1.GroupName, "priorityclasses") || o != admissionv1.Create && o != admissionv1.Update {
		return plugin.Answer{}, nil
	}
	class, err := plugin.Decode[schedulingv1.PriorityClass](a.Object())
	if err != nil {
		return plugin.Answer{}, err
	}
	if class == nil {
		return plugin.Answer{}, missing("PriorityClass")
	}
	if !class.GlobalDefault {
		return plugin.Answer{}, nil
	}
	other, err := defaultPriorityClass(a)
	if err != nil {
		return plugin.Answer{}, err
	}
	if other != nil && (a.Operation() == admissionv1.Create || other.Name != class.Name) {
		return a.Forbid("PriorityClass %v is already marked as default. Only one default can exist", other.Name), nil
	}
	return plugin.Answer{}, nil
}
