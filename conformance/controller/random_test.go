// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"math/rand/v2"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dice draws what plugins look at.
type dice struct{ *rand.Rand }

// one reports true once in n.
func (d dice) one(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d dice, list ...T) T { return list[d.IntN(len(list))] }

// maybe is a pointer to one of the values, or nil.
func maybe[T any](d dice, list ...T) *T {
	if d.one(2) {
		return nil
	}
	return new(pick(d, list...))
}

// some is a list of at most n, and mostly of few.
func some[T any](d dice, n int, draw func() T) (list []T) {
	for range d.IntN(d.IntN(n+1) + 1) {
		list = append(list, draw())
	}
	return list
}

// podRequest is about a pod.
func podRequest(d dice) *request {
	q := &request{
		operation:   pick(d, admissionv1.Create, admissionv1.Create, admissionv1.Create, admissionv1.Create, admissionv1.Update, admissionv1.Update, admissionv1.Delete),
		resource:    corev1.SchemeGroupVersion.WithResource("pods"),
		kind:        "Pod",
		subresource: pick(d, "", "", "", "", "", "", "", "", "", "", "", "", "status", "resize", "ephemeralcontainers"),
		name:        pick(d, "", "web", "other"),
	}
	if q.operation != admissionv1.Delete {
		q.object = d.pod()
	}
	if q.operation != admissionv1.Create {
		q.old = d.pod()
	}
	return q
}

func (d dice) metadata() metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "shop", Name: pick(d, "web", "db", ""), GenerateName: pick(d, "", "w-")}
	if d.one(3) {
		m.Annotations = map[string]string{pick(d, "a", "kubernetes.io/limit-ranger"): "b"}
	}
	if d.one(10) {
		m.DeletionTimestamp = new(metav1.Unix(1e9, 0))
	}
	return m
}

func (d dice) pod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: d.metadata()}
	s := &pod.Spec
	for i := range d.IntN(4) {
		s.Containers = append(s.Containers, d.container(fmt.Sprint("c", i)))
	}
	for i := range d.IntN(3) {
		s.InitContainers = append(s.InitContainers, d.container(fmt.Sprint("i", i)))
	}
	for i := range d.IntN(2) {
		s.EphemeralContainers = append(s.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: fmt.Sprint("e", i), Image: pick(d, "a", "b"), ImagePullPolicy: d.pullPolicy()},
		})
	}
	if d.one(4) {
		s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "a", PullPolicy: d.pullPolicy()}}}}
	}
	if d.one(4) {
		s.Resources = new(d.requirements())
	}
	s.NodeSelector = d.labels()
	s.Tolerations = some(d, 5, d.toleration)
	s.PriorityClassName = pick(d, "", "", "high", "low", "unknown")
	s.Priority = maybe(d, int32(0), 5, 10, 1000)
	if d.one(2) {
		s.Priority = nil
	}
	s.PreemptionPolicy = maybe(d, corev1.PreemptNever, corev1.PreemptLowerPriority)
	s.RuntimeClassName = maybe(d, "kata", "gvisor", "none", "unknown")
	if d.one(4) {
		s.Overhead = d.list("100m", "0.1", "1Gi")
	}
	pod.Status.QOSClass = pick(d, "", "", "", "", corev1.PodQOSBestEffort, corev1.PodQOSBurstable)
	if d.one(3) {
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: some(d, 3, func() corev1.PodAffinityTerm {
				return corev1.PodAffinityTerm{TopologyKey: pick(d, corev1.LabelHostname, corev1.LabelHostname, "zone", "")}
			}),
		}}
	}
	return pod
}

func (d dice) pullPolicy() corev1.PullPolicy {
	return pick(d, "", corev1.PullAlways, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
}

func (d dice) container(name string) corev1.Container {
	c := corev1.Container{Name: name, Image: pick(d, "a", "b", "c"), ImagePullPolicy: d.pullPolicy(), Resources: d.requirements()}
	if name[0] == 'i' && d.one(2) {
		c.RestartPolicy = new(pick(d, corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyOnFailure))
	}
	return c
}

func (d dice) requirements() (r corev1.ResourceRequirements) {
	if d.one(3) {
		return r
	}
	if !d.one(3) {
		r.Requests = d.list()
	}
	if !d.one(3) {
		r.Limits = d.list()
	}
	if d.one(8) {
		r.Claims = []corev1.ResourceClaim{{Name: "claim"}}
	}
	return r
}

// list is a list of resources, with quantities of those, or any.
func (d dice) list(quantities ...string) corev1.ResourceList {
	if len(quantities) == 0 {
		quantities = []string{"0", "1m", "100m", "1", "1000m", "1500m", "2", "2500m", "512Mi", "1Gi", "1024Mi", "1e3", "3G", "9223372036854775807", "10E", "0.0001", "-1"}
	}
	list := corev1.ResourceList{}
	for range d.IntN(4) {
		name := pick(d, corev1.ResourceCPU, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, "example.com/gpu", "hugepages-2Mi")
		list[name] = resource.MustParse(pick(d, quantities...))
	}
	if len(list) == 0 && d.one(2) {
		return nil
	}
	return list
}

func (d dice) labels() map[string]string {
	labels := map[string]string{}
	for range d.IntN(3) {
		labels[pick(d, "team", "zone", "node.kubernetes.io/pool")] = pick(d, "a", "b", "")
	}
	if len(labels) == 0 && d.one(2) {
		return nil
	}
	return labels
}

func (d dice) toleration() corev1.Toleration {
	t := corev1.Toleration{
		Key:      pick(d, "", "a", "b", "example.com/gpu", corev1.TaintNodeMemoryPressure, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable),
		Operator: pick(d, "", corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpExists, corev1.TolerationOpLt),
		Value:    pick(d, "", "", "x", "y"),
		Effect:   pick(d, "", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule),
	}
	if d.one(3) {
		t.TolerationSeconds = new(pick(d, int64(0), 60, 300))
	}
	return t
}
