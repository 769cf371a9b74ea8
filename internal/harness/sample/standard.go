// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"maps"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PodSecurity draws a request that the controller PodSecurity looks at, in one of two
// namespaces, shop and exempt.
func PodSecurity(dice Dice) *Request {
	d := secured{dice}
	q := &Request{
		Operation: Pick(dice, admissionv1.Create, admissionv1.Create, admissionv1.Update), Namespace: Pick(dice, "shop", "shop", "shop", "exempt"),
		Name: Pick(dice, "web", "web", ""),
	}
	switch d.IntN(10) {
	case 0, 1:
		q.ofNamespace(d)
	case 2, 3, 4:
		q.ofWorkload(d)
	default:
		q.Resource, q.Kind = corev1.SchemeGroupVersion.WithResource("pods"), "Pod"
		q.Subresource = Pick(dice, "", "", "", "", "ephemeralcontainers", "resize", "status", "exec", "binding", "later")
		pod := &corev1.Pod{ObjectMeta: d.metadata(), Spec: d.spec()}
		q.Object = pod
		if q.Operation == admissionv1.Update {
			old := pod.DeepCopy()
			if d.One(2) {
				old.Spec.Containers[0].Image = Pick(dice, "a", "b", "c")
			}
			if d.One(8) {
				old.Spec.EphemeralContainers, old.Spec.InitContainers = nil, nil
			}
			q.Old = old
		}
	}
	return q
}

// Levels draws labels of a namespace that say which standards hold there.
func Levels(d Dice) map[string]string { return secured{d}.levels() }

func (q *Request) ofNamespace(d secured) {
	q.Resource, q.Kind = corev1.SchemeGroupVersion.WithResource("namespaces"), "Namespace"
	q.Name, q.Subresource = q.Namespace, Pick(d.Dice, "", "", "", "status", "finalize")
	q.Object = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: q.Name, Labels: d.levels()}}
	if q.Operation == admissionv1.Update {
		old := d.levels()
		if d.One(4) {
			old = maps.Clone(q.Object.(*corev1.Namespace).Labels)
		}
		q.Old = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: q.Name, Labels: old}}
	}
}

func (q *Request) ofWorkload(d secured) {
	template := corev1.PodTemplateSpec{ObjectMeta: d.metadata(), Spec: d.spec()}
	q.Subresource = Pick(d.Dice, "", "", "", "", "", "scale")
	set := func(gv schema.GroupVersion, resource, kind string, object runtime.Object) {
		q.Resource, q.Kind, q.Object = gv.WithResource(resource), kind, object
	}
	switch d.IntN(9) {
	case 0:
		set(corev1.SchemeGroupVersion, "podtemplates", "PodTemplate", &corev1.PodTemplate{Template: template})
	case 1:
		rc := &corev1.ReplicationController{Spec: corev1.ReplicationControllerSpec{Template: &template}}
		if d.One(4) {
			rc.Spec.Template = nil
		}
		set(corev1.SchemeGroupVersion, "replicationcontrollers", "ReplicationController", rc)
	case 2:
		set(appsv1.SchemeGroupVersion, "replicasets", "ReplicaSet", &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Template: template}})
	case 3:
		set(appsv1.SchemeGroupVersion, "deployments", "Deployment", &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: template}})
	case 4:
		set(appsv1.SchemeGroupVersion, "statefulsets", "StatefulSet", &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Template: template}})
	case 5:
		set(appsv1.SchemeGroupVersion, "daemonsets", "DaemonSet", &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: template}})
	case 6:
		set(batchv1.SchemeGroupVersion, "jobs", "Job", &batchv1.Job{Spec: batchv1.JobSpec{Template: template}})
	case 7:
		set(batchv1.SchemeGroupVersion, "cronjobs", "CronJob", &batchv1.CronJob{Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template}}}})
	case 8:
		q.Resource, q.Kind, q.Object = corev1.SchemeGroupVersion.WithResource("configmaps"), "ConfigMap", &corev1.ConfigMap{}
	}
	if q.Operation == admissionv1.Update {
		q.Old = q.Object
	}
}
