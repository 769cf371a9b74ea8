// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/sample"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// trial is what is sent to both clusters about one controller: perhaps requests that
// store something, then one that is a dry run. Each is compared.
type trial struct {
	controller string
	steps      []step
	answers    [2][]answer // of the original's cluster, and of ours
}

// step is one request. Where it changes an object, its body is what the request before
// has answered, changed.
type step struct {
	request
	change func(object map[string]any)
}

// send sends the steps to one cluster, up to the first that is not done. One that some
// webhook call has failed for is sent again: the machine was busy.
func (c *cluster) try(t *testing.T, steps []step) (answers []answer, err error) {
	const attempts = 4
	for i, s := range steps {
		if s.change != nil {
			object := runtime.DeepCopyJSON(answers[i-1].object)
			unstructured.RemoveNestedField(object, "metadata", "managedFields")
			s.change(object)
			s.body = object
		}
		var a answer
		for attempt := 0; attempt == 0 || attempt < attempts && a.status != nil && failedWebhook.MatchString(a.status.Message); attempt++ {
			if a, err = c.send(t, s.request, "controller"); err != nil {
				return nil, fmt.Errorf("%s %s: %w", s.method, s.path, err)
			}
		}
		answers = append(answers, a)
		if !a.allowed() {
			break
		}
	}
	return answers, nil
}

const dryRun = "?dryRun=All"

// path is that of a resource, or of an object.
func path(r schema.GroupVersionResource, namespace string, more ...string) string {
	p := "/apis/" + r.Group + "/" + r.Version
	if r.Group == "" {
		p = "/api/" + r.Version
	}
	if namespace != "" {
		p += "/namespaces/" + namespace
	}
	p += "/" + r.Resource
	for _, s := range more {
		if s != "" {
			p += "/" + s
		}
	}
	return p
}

func created(o runtime.Object, r schema.GroupVersionResource, namespace, query string) step {
	return step{request: request{method: http.MethodPost, path: path(r, namespace) + query, contentType: runtime.ContentTypeJSON, body: o}}
}

func replaced(r schema.GroupVersionResource, namespace, name, subresource, query string, change func(map[string]any)) step {
	return step{request{method: http.MethodPut, path: path(r, namespace, name, subresource) + query, contentType: runtime.ContentTypeJSON}, change}
}

// requested makes of a drawn request what an API server accepts as far as it is not about
// the controller: an object with a name of its own, which an update finds stored.
func requested(d sample.Dice, controller string, q *sample.Request, namespace, name string) []step {
	r := q.Resource
	drawn := q.Object
	if drawn == nil {
		drawn = q.Old
	}
	drawn = drawn.DeepCopyObject()
	if r.Resource == "namespaces" || r.Resource == "priorityclasses" || r.Resource == "certificatesigningrequests" {
		namespace = ""
	}
	accept(d, controller, drawn, name, namespace)
	drawn.GetObjectKind().SetGroupVersionKind(r.GroupVersion().WithKind(q.Kind))
	switch {
	case q.Operation == admissionv1.Create && (q.Subresource == "" || r.Resource != "pods" && r.Resource != "persistentvolumeclaims"):
		return []step{created(drawn, r, namespace, dryRun)}
	case q.Operation == admissionv1.Delete:
		return []step{created(drawn, r, namespace, ""), {request: request{method: http.MethodDelete, path: path(r, namespace, name) + dryRun, contentType: runtime.ContentTypeJSON}}}
	}
	old := drawn
	if q.Old != nil {
		old = q.Old.DeepCopyObject()
		accept(d, controller, old, name, namespace)
		old.GetObjectKind().SetGroupVersionKind(drawn.GetObjectKind().GroupVersionKind())
	}
	steps := []step{created(old, r, namespace, "")}
	sub, fields := changes(q, drawn)
	if claim, ok := drawn.(*corev1.PersistentVolumeClaim); ok && claim.Status.Phase == corev1.ClaimBound {
		steps = append(steps, replaced(r, namespace, name, "status", "", func(o map[string]any) {
			_ = unstructured.SetNestedField(o, "Bound", "status", "phase")
		}))
	}
	return append(steps, replaced(r, namespace, name, sub, dryRun, fields))
}

// changes are what an update may change, of what was drawn.
func changes(q *sample.Request, drawn runtime.Object) (subresource string, change func(map[string]any)) {
	to := inJSON(drawn)
	copied := func(o map[string]any, path ...string) {
		if value, ok, _ := unstructured.NestedFieldCopy(to, path...); ok {
			_ = unstructured.SetNestedField(o, value, path...)
		}
	}
	pod, ok := drawn.(*corev1.Pod)
	switch {
	case ok && q.Subresource == "ephemeralcontainers":
		one := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "debug", ImagePullPolicy: corev1.PullIfNotPresent}}
		if len(pod.Spec.Containers) > 0 {
			one.SecurityContext = pod.Spec.Containers[0].SecurityContext
		}
		return q.Subresource, func(o map[string]any) {
			_ = unstructured.SetNestedSlice(o, []any{inJSON(&one)}, "spec", "ephemeralContainers")
		}
	case ok && q.Subresource == "resize":
		return q.Subresource, func(o map[string]any) { eachContainer(o, to, "resources") }
	case ok && q.Subresource == "status":
		return q.Subresource, func(o map[string]any) { _ = unstructured.SetNestedField(o, "later", "status", "reason") }
	case ok:
		return "", func(o map[string]any) {
			eachContainer(o, to, "image")
			copied(o, "metadata", "labels")
			tolerations, _, _ := unstructured.NestedSlice(o, "spec", "tolerations")
			more, _, _ := unstructured.NestedSlice(to, "spec", "tolerations")
			_ = unstructured.SetNestedSlice(o, append(tolerations, more...), "spec", "tolerations")
		}
	case q.Kind == "PersistentVolumeClaim":
		return "", func(o map[string]any) { copied(o, "spec", "resources", "requests") }
	case q.Kind == "Namespace":
		return "", func(o map[string]any) { copied(o, "metadata", "labels") }
	case q.Kind == "Service", q.Kind == "Ingress", q.Kind == "PriorityClass":
		return "", func(o map[string]any) {
			copied(o, "spec", "externalIPs")
			copied(o, "spec", "ingressClassName")
			copied(o, "globalDefault")
		}
	}
	return "", func(o map[string]any) { // of a workload
		_ = unstructured.SetNestedField(o, "b", "metadata", "annotations", "updated")
	}
}

// eachContainer gives a field of the drawn containers to those that are there.
func eachContainer(o, drawn map[string]any, field string) {
	containers, _, _ := unstructured.NestedSlice(o, "spec", "containers")
	from, _, _ := unstructured.NestedSlice(drawn, "spec", "containers")
	for i := range min(len(from), len(containers)) {
		if value, ok := from[i].(map[string]any)[field]; ok {
			containers[i].(map[string]any)[field] = value
		}
	}
	_ = unstructured.SetNestedSlice(o, containers, "spec", "containers")
}

func inJSON(o any) (fields map[string]any) {
	data, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(data, &fields)
	}
	if err != nil {
		panic(err)
	}
	return fields
}

// accept makes an object one that the API server does not refuse itself, mostly.
func accept(d sample.Dice, controller string, o runtime.Object, name, namespace string) {
	m, err := meta.Accessor(o)
	if err != nil {
		panic(err)
	}
	m.SetName(name)
	m.SetNamespace(namespace)
	m.SetGenerateName("")
	m.SetDeletionTimestamp(nil)
	web := map[string]string{"app": "web"}
	selector := &metav1.LabelSelector{MatchLabels: web}
	switch o := o.(type) {
	case *corev1.Pod:
		o.Status = corev1.PodStatus{}
		acceptPod(d, controller, &o.Spec)
	case *corev1.PodTemplate:
		acceptTemplate(d, controller, &o.Template, web)
	case *corev1.ReplicationController:
		if o.Spec.Selector = web; o.Spec.Template != nil {
			acceptTemplate(d, controller, o.Spec.Template, web)
		}
	case *appsv1.ReplicaSet:
		o.Spec.Selector = selector
		acceptTemplate(d, controller, &o.Spec.Template, web)
	case *appsv1.Deployment:
		o.Spec.Selector = selector
		acceptTemplate(d, controller, &o.Spec.Template, web)
	case *appsv1.StatefulSet:
		o.Spec.Selector = selector
		acceptTemplate(d, controller, &o.Spec.Template, web)
	case *appsv1.DaemonSet:
		o.Spec.Selector = selector
		acceptTemplate(d, controller, &o.Spec.Template, web)
	case *batchv1.Job:
		acceptTemplate(d, controller, &o.Spec.Template, web)
		o.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	case *batchv1.CronJob:
		o.Spec.Schedule = "@daily"
		acceptTemplate(d, controller, &o.Spec.JobTemplate.Spec.Template, web)
		o.Spec.JobTemplate.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	case *corev1.PersistentVolumeClaim:
		o.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		if controller == "PersistentVolumeClaimResize" {
			o.Spec.StorageClassName = new(sample.Pick(d, "gold", "silver", "unknown", ""))
			if !d.One(4) {
				o.Status.Phase = corev1.ClaimBound
			}
		}
		if len(o.Spec.Resources.Requests) == 0 && !d.One(10) {
			o.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: quantity("1Gi")}
		}
	case *networkingv1.Ingress:
		o.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}
	case *corev1.Service:
		o.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	case *certificatesv1.CertificateSigningRequest:
		o.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}
	}
}

func acceptTemplate(d sample.Dice, controller string, t *corev1.PodTemplateSpec, labels map[string]string) {
	t.Name, t.Labels, t.DeletionTimestamp = "", labels, nil
	acceptPod(d, controller, &t.Spec)
}
