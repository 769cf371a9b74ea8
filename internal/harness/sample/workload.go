// SPDX-License-Identifier: Apache-2.0

package sample

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// WorkloadKind is a kind with the pods of a template, or pods.
type WorkloadKind struct {
	schema.GroupVersionKind
	Subresource string
	Of          func(p *corev1.Pod) runtime.Object // which has what the pod has
}

// WorkloadKinds are those of Kubernetes.
var WorkloadKinds = []WorkloadKind{
	{corev1.SchemeGroupVersion.WithKind("Pod"), "", func(p *corev1.Pod) runtime.Object { return p }},
	{corev1.SchemeGroupVersion.WithKind("Pod"), "ephemeralcontainers", func(p *corev1.Pod) runtime.Object { return p }},
	{corev1.SchemeGroupVersion.WithKind("PodTemplate"), "", func(p *corev1.Pod) runtime.Object {
		return &corev1.PodTemplate{ObjectMeta: p.ObjectMeta, Template: templateOf(p)}
	}},
	{corev1.SchemeGroupVersion.WithKind("ReplicationController"), "", func(p *corev1.Pod) runtime.Object {
		t := templateOf(p)
		return &corev1.ReplicationController{ObjectMeta: p.ObjectMeta, Spec: corev1.ReplicationControllerSpec{Replicas: new(int32(2)), Selector: selects, Template: &t}}
	}},
	{appsv1.SchemeGroupVersion.WithKind("Deployment"), "", func(p *corev1.Pod) runtime.Object {
		return &appsv1.Deployment{ObjectMeta: p.ObjectMeta, Spec: appsv1.DeploymentSpec{Replicas: new(int32(3)), Selector: selector(), Template: templateOf(p)}}
	}},
	{appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), "", func(p *corev1.Pod) runtime.Object {
		return &appsv1.ReplicaSet{ObjectMeta: p.ObjectMeta, Spec: appsv1.ReplicaSetSpec{Selector: selector(), Template: templateOf(p)}}
	}},
	{appsv1.SchemeGroupVersion.WithKind("DaemonSet"), "", func(p *corev1.Pod) runtime.Object {
		return &appsv1.DaemonSet{ObjectMeta: p.ObjectMeta, Spec: appsv1.DaemonSetSpec{Selector: selector(), Template: templateOf(p)}}
	}},
	{appsv1.SchemeGroupVersion.WithKind("StatefulSet"), "", func(p *corev1.Pod) runtime.Object {
		return &appsv1.StatefulSet{ObjectMeta: p.ObjectMeta, Spec: appsv1.StatefulSetSpec{Selector: selector(), Template: templateOf(p)}}
	}},
	{batchv1.SchemeGroupVersion.WithKind("Job"), "", func(p *corev1.Pod) runtime.Object {
		return &batchv1.Job{ObjectMeta: p.ObjectMeta, Spec: batchv1.JobSpec{Template: templateOf(p)}}
	}},
	{batchv1.SchemeGroupVersion.WithKind("CronJob"), "", func(p *corev1.Pod) runtime.Object {
		return &batchv1.CronJob{ObjectMeta: p.ObjectMeta, Spec: batchv1.CronJobSpec{Schedule: "@daily", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: templateOf(p)}}}}
	}},
}

var selects = map[string]string{"app": "web"}

func selector() *metav1.LabelSelector { return &metav1.LabelSelector{MatchLabels: selects} }

func templateOf(p *corev1.Pod) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels, Annotations: p.Annotations}, Spec: p.Spec}
}

// Hardened returns a pod that every policy should let pass.
func Hardened() *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop",
		Labels: map[string]string{
			"app": "web", "owner": "team-a", "app.kubernetes.io/name": "web", "app.kubernetes.io/instance": "web-1", "app.kubernetes.io/version": "1.2.3",
			"app.kubernetes.io/component": "front", "app.kubernetes.io/part-of": "shop", "app.kubernetes.io/managed-by": "Helm",
		},
		Annotations:     map[string]string{"example.com/contact": "team-a@example.com"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "1"}},
	}}
	p.Spec = corev1.PodSpec{
		ServiceAccountName: "web", AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(30)),
		NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(1000)), RunAsGroup: new(int64(1000)), FSGroup: new(int64(1000)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}, SELinuxOptions: &corev1.SELinuxOptions{Level: "s0:c1"},
		},
		Containers:     []corev1.Container{hardenedContainer("web")},
		InitContainers: []corev1.Container{hardenedContainer("setup")},
		Volumes: []corev1.Volume{
			{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("1Gi"))}}},
			{Name: "secrets", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "secrets-store.csi.k8s.io", VolumeAttributes: map[string]string{"secretProviderClass": "web"}}}},
		},
	}
	return p
}

func hardenedContainer(name string) corev1.Container {
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}}
	amounts := corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("128Mi")}
	return corev1.Container{
		Name: name, Image: "registry.example.com/shop/" + name + ":1.2.3", ImagePullPolicy: corev1.PullAlways, LivenessProbe: probe, ReadinessProbe: probe,
		Resources: corev1.ResourceRequirements{Limits: amounts, Requests: amounts},
		Ports:     []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
		Env:       []corev1.EnvVar{{Name: "LEVEL", Value: "info"}, {Name: "PORT", Value: "8080"}},
		SecurityContext: &corev1.SecurityContext{
			Privileged: new(false), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), RunAsNonRoot: new(true), RunAsUser: new(int64(1000)),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
}
