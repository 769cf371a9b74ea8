// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podRequest is about a pod.
func podRequest(d Dice) *Request {
	q := &Request{
		Operation:   Pick(d, admissionv1.Create, admissionv1.Create, admissionv1.Create, admissionv1.Create, admissionv1.Update, admissionv1.Update, admissionv1.Delete),
		Resource:    corev1.SchemeGroupVersion.WithResource("pods"),
		Kind:        "Pod",
		Subresource: Pick(d, "", "", "", "", "", "", "", "", "", "", "", "", "status", "resize", "ephemeralcontainers"),
		Name:        Pick(d, "", "web", "other"),
	}
	if q.Operation != admissionv1.Delete {
		q.Object = d.pod()
	}
	if q.Operation != admissionv1.Create {
		q.Old = d.pod()
	}
	return q
}

func (d Dice) metadata() metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "shop", Name: Pick(d, "web", "db", ""), GenerateName: Pick(d, "", "w-")}
	if d.One(3) {
		m.Annotations = map[string]string{Pick(d, "a", "kubernetes.io/limit-ranger"): "b"}
	}
	if d.One(10) {
		m.DeletionTimestamp = new(metav1.Unix(1e9, 0))
	}
	return m
}

func (d Dice) pod() *corev1.Pod {
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
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: fmt.Sprint("e", i), Image: Pick(d, "a", "b"), ImagePullPolicy: d.pullPolicy()},
		})
	}
	if d.One(4) {
		s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "a", PullPolicy: d.pullPolicy()}}}}
	}
	if d.One(4) {
		s.Resources = new(d.requirements())
	}
	s.NodeSelector = d.labels()
	s.Tolerations = Some(d, 5, d.toleration)
	s.PriorityClassName = Pick(d, "", "", "high", "low", "unknown")
	s.Priority = Maybe(d, int32(0), 5, 10, 1000)
	if d.One(2) {
		s.Priority = nil
	}
	s.PreemptionPolicy = Maybe(d, corev1.PreemptNever, corev1.PreemptLowerPriority)
	s.RuntimeClassName = Maybe(d, "kata", "gvisor", "none", "unknown")
	if d.One(4) {
		s.Overhead = d.list("100m", "0.1", "1Gi")
	}
	pod.Status.QOSClass = Pick(d, "", "", "", "", corev1.PodQOSBestEffort, corev1.PodQOSBurstable)
	if d.One(3) {
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: Some(d, 3, func() corev1.PodAffinityTerm {
				return corev1.PodAffinityTerm{TopologyKey: Pick(d, corev1.LabelHostname, corev1.LabelHostname, "zone", "")}
			}),
		}}
	}
	return pod
}

func (d Dice) pullPolicy() corev1.PullPolicy {
	return Pick(d, "", corev1.PullAlways, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
}

func (d Dice) container(name string) corev1.Container {
	c := corev1.Container{Name: name, Image: Pick(d, "a", "b", "c"), ImagePullPolicy: d.pullPolicy(), Resources: d.requirements()}
	if name[0] == 'i' && d.One(2) {
		c.RestartPolicy = new(Pick(d, corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyOnFailure))
	}
	return c
}

func (d Dice) requirements() (r corev1.ResourceRequirements) {
	if d.One(3) {
		return r
	}
	if !d.One(3) {
		r.Requests = d.list()
	}
	if !d.One(3) {
		r.Limits = d.list()
	}
	if d.One(8) {
		r.Claims = []corev1.ResourceClaim{{Name: "claim"}}
	}
	return r
}

// list is a list of resources, with quantities of those, or any.
func (d Dice) list(quantities ...string) corev1.ResourceList {
	if len(quantities) == 0 {
		quantities = []string{"0", "1m", "100m", "1", "1000m", "1500m", "2", "2500m", "512Mi", "1Gi", "1024Mi", "1e3", "3G", "9223372036854775807", "10E", "0.0001", "-1"}
	}
	list := corev1.ResourceList{}
	for range d.IntN(4) {
		name := Pick(d, corev1.ResourceCPU, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, "example.com/gpu", "hugepages-2Mi")
		list[name] = resource.MustParse(Pick(d, quantities...))
	}
	if len(list) == 0 && d.One(2) {
		return nil
	}
	return list
}

func (d Dice) labels() map[string]string {
	labels := map[string]string{}
	for range d.IntN(3) {
		labels[Pick(d, "team", "zone", "node.kubernetes.io/pool")] = Pick(d, "a", "b", "")
	}
	if len(labels) == 0 && d.One(2) {
		return nil
	}
	return labels
}

func (d Dice) toleration() corev1.Toleration {
	t := corev1.Toleration{
		Key:      Pick(d, "", "a", "b", "example.com/gpu", corev1.TaintNodeMemoryPressure, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable),
		Operator: Pick(d, "", corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpExists, corev1.TolerationOpLt),
		Value:    Pick(d, "", "", "x", "y"),
		Effect:   Pick(d, "", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule),
	}
	if d.One(3) {
		t.TolerationSeconds = new(Pick(d, int64(0), 60, 300))
	}
	return t
}
