// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// everything is asked about everything in the namespaces of its test, and about
// cluster-scoped objects that carry its label.
const everything = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: everything}
webhooks:
- name: namespaced.e2e.example.com
  clientConfig: {url: "$URL/everything", caBundle: $CA}
  rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"], scope: Namespaced}]
  matchConditions: [{name: ours, expression: 'request.namespace.startsWith("e2e-")'}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
- name: cluster-scoped.e2e.example.com
  clientConfig: {url: "$URL/everything", caBundle: $CA}
  rules: [{operations: ["*"], apiGroups: [rbac.authorization.k8s.io], apiVersions: ["*"], resources: [clusterroles], scope: Cluster}]
  objectSelector: {matchLabels: {e2e: "yes"}}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: mark}
webhooks:
- name: mark.e2e.example.com
  clientConfig: {url: "$URL/mark", caBundle: $CA}
  rules: [{operations: [CREATE], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"], scope: Namespaced}]
  matchConditions: [{name: ours, expression: 'request.namespace.startsWith("e2e-") && object.metadata.?annotations.orValue({}).size() > 0'}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`

const widgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.e2e.example.com}
spec:
  group: e2e.example.com
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

var widgetResource = schema.GroupVersionResource{Group: "e2e.example.com", Version: "v1", Resource: "widgets"}

// action is one thing that a client does, and the review that must come of it.
type action struct {
	name string
	do   func(o *operator) error
	want asking
}

// asking is the part of a review that says what is being done.
type asking struct {
	operation   admissionv1.Operation
	resource    string
	subresource string
	dryRun      bool
}

// actions run in this order in one namespace: what one makes, the next changes.
var actions = []action{
	{"create", (*operator).createPod, asking{operation: "CREATE", resource: "pods"}},
	{"create with generateName", (*operator).generateName, asking{operation: "CREATE", resource: "configmaps"}},
	{"create, dry run", (*operator).dryRun, asking{operation: "CREATE", resource: "configmaps", dryRun: true}},
	{"update", (*operator).updatePod, asking{operation: "UPDATE", resource: "pods"}},
	{"patch", (*operator).patchPod, asking{operation: "UPDATE", resource: "pods"}},
	{"server-side apply, new", (*operator).serverSideApply, asking{operation: "CREATE", resource: "configmaps"}},
	{"server-side apply, there already", (*operator).serverSideApplyAgain, asking{operation: "UPDATE", resource: "configmaps"}},
	{"status", (*operator).status, asking{operation: "UPDATE", resource: "pods", subresource: "status"}},
	{"deployment", (*operator).createDeployment, asking{operation: "CREATE", resource: "deployments"}},
	{"scale", (*operator).scale, asking{operation: "UPDATE", resource: "deployments", subresource: "scale"}},
	{"custom resource", (*operator).customResource, asking{operation: "CREATE", resource: "widgets"}},
	{"object of 1 MB", (*operator).oneMegabyte, asking{operation: "CREATE", resource: "configmaps"}},
	{"cluster-scoped object", (*operator).clusterScoped, asking{operation: "CREATE", resource: "clusterroles"}},
	{"delete of a cluster-scoped object", (*operator).deleteClusterScoped, asking{operation: "DELETE", resource: "clusterroles"}},
	{"exec", (*operator).exec, asking{operation: "CONNECT", resource: "pods", subresource: "exec"}},
	{"delete", (*operator).deletePod, asking{operation: "DELETE", resource: "pods"}},
	{"deletecollection", (*operator).deleteCollection, asking{operation: "DELETE", resource: "configmaps"}},
}

// Each action is denied as long as the webhook says no, and done when it says yes;
// the webhook sees it as kube-apiserver names it.
func TestActionsOfClients(t *testing.T) {
	c := shared.east
	c.apply(t, widgets)
	dispatch(t, []*cluster{c}, everything)
	shared.webhooks.handle("/mark", patch(`[{"op":"add","path":"/metadata/annotations/marked","value":"yes"}]`))
	shared.webhooks.handle("/everything", allow)
	eventually(t, "widgets are served", func() error {
		_, err := c.objects.Resource(widgetResource).List(t.Context(), metav1.ListOptions{})
		return err
	})
	o := &operator{t: t, cluster: c, namespace: c.namespace(t, nil)}
	for _, a := range actions {
		t.Run(a.name, func(t *testing.T) {
			shared.webhooks.handle("/everything", deny(http.StatusForbidden, "no "+a.name+" today"))
			if err := a.do(o); err == nil || !strings.Contains(err.Error(), `admission webhook "validate.admission-dispatcher.dispatcher.dev" denied the request`) ||
				!strings.Contains(err.Error(), "no "+a.name+" today") {
				t.Errorf("denied by the webhook, the client sees: %v", err)
			}
			shared.webhooks.handle("/everything", allow)
			if err := a.do(o); err != nil && !o.reachedTheNode(err) {
				t.Errorf("allowed by the webhook, the client sees: %v", err)
			}
			if !wasAsked(shared.webhooks.callsOf("/everything"), a.want) {
				t.Errorf("the webhook was not asked for %+v", a.want)
			}
		})
	}
	if marked := o.pod.Annotations["marked"]; marked != "yes" {
		t.Errorf("the pod as stored has the annotation marked=%q", marked)
	}
}

func wasAsked(calls []call, want asking) bool {
	for _, c := range calls {
		r := c.request
		got := asking{r.Operation, r.Resource.Resource, r.SubResource, r.DryRun != nil && *r.DryRun}
		if got == want {
			return true
		}
	}
	return false
}

// operator does the actions, one after the other.
type operator struct {
	t         *testing.T
	cluster   *cluster
	namespace string
	pod       *corev1.Pod // as it was created
}

func (o *operator) createPod() error {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{"owner": "e2e"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/web:v1"}}},
	}
	created, err := o.cluster.client.CoreV1().Pods(o.namespace).Create(o.t.Context(), p, metav1.CreateOptions{})
	if err == nil {
		o.pod = created
	}
	return err
}

func (o *operator) updatePod() error {
	p, err := o.cluster.client.CoreV1().Pods(o.namespace).Get(o.t.Context(), "web", getOptions)
	if err != nil {
		return err
	}
	p.Labels = map[string]string{"updated": "yes"}
	_, err = o.cluster.client.CoreV1().Pods(o.namespace).Update(o.t.Context(), p, metav1.UpdateOptions{})
	return err
}

func (o *operator) patchPod() error {
	_, err := o.cluster.client.CoreV1().Pods(o.namespace).Patch(o.t.Context(), "web", types.StrategicMergePatchType,
		[]byte(`{"metadata":{"labels":{"patched":"yes"}}}`), metav1.PatchOptions{})
	return err
}

func (o *operator) deletePod() error {
	now := int64(0)
	return o.cluster.client.CoreV1().Pods(o.namespace).Delete(o.t.Context(), "web", metav1.DeleteOptions{GracePeriodSeconds: &now})
}

func (o *operator) status() error {
	_, err := o.cluster.client.CoreV1().Pods(o.namespace).Patch(o.t.Context(), "web", types.MergePatchType,
		[]byte(`{"status":{"message":"from e2e"}}`), metav1.PatchOptions{}, "status")
	return err
}

// exec is answered before anything is connected: a pod that no node runs will do.
func (o *operator) exec() error {
	return o.cluster.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(o.namespace).Name("web").SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: []string{"true"}, Stdout: true}, scheme.ParameterCodec).Do(o.t.Context()).Error()
}

// reachedTheNode recognizes what kube-apiserver says to an exec that was admitted.
func (o *operator) reachedTheNode(err error) bool {
	return strings.Contains(err.Error(), "does not have a host assigned")
}

func (o *operator) configMap(name string, data string, opts metav1.CreateOptions) error {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"data": data}}
	if strings.HasSuffix(name, "-") {
		m.Name, m.GenerateName = "", name
	}
	_, err := o.cluster.client.CoreV1().ConfigMaps(o.namespace).Create(o.t.Context(), m, opts)
	return err
}

func (o *operator) generateName() error { return o.configMap("made-", "", metav1.CreateOptions{}) }

func (o *operator) dryRun() error {
	return o.configMap("dry", "", metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

func (o *operator) oneMegabyte() error {
	return o.configMap("large", strings.Repeat("0123456789abcde\n", 1_000_000/16), metav1.CreateOptions{})
}

func (o *operator) serverSideApply() error { return o.applyConfigMap("1") }

func (o *operator) serverSideApplyAgain() error { return o.applyConfigMap("2") }

func (o *operator) applyConfigMap(data string) error {
	m := corev1apply.ConfigMap("applied", o.namespace).WithData(map[string]string{"data": data})
	_, err := o.cluster.client.CoreV1().ConfigMaps(o.namespace).Apply(o.t.Context(), m, metav1.ApplyOptions{FieldManager: "e2e"})
	return err
}

func (o *operator) deleteCollection() error {
	return o.cluster.client.CoreV1().ConfigMaps(o.namespace).DeleteCollection(o.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
}

func (o *operator) createDeployment() error {
	labels := map[string]string{"app": "web"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/web:v1"}}},
			},
		},
	}
	_, err := o.cluster.client.AppsV1().Deployments(o.namespace).Create(o.t.Context(), d, metav1.CreateOptions{})
	return err
}

func (o *operator) scale() error {
	s := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: o.namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
	_, err := o.cluster.client.AppsV1().Deployments(o.namespace).UpdateScale(o.t.Context(), "web", s, metav1.UpdateOptions{})
	return err
}

func (o *operator) customResource() error {
	w := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "e2e.example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"}}}
	_, err := o.cluster.objects.Resource(widgetResource).Namespace(o.namespace).Create(o.t.Context(), w, metav1.CreateOptions{})
	return err
}

func (o *operator) clusterScoped() error {
	r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "e2e-role", Labels: map[string]string{"e2e": "yes"}}}
	_, err := o.cluster.client.RbacV1().ClusterRoles().Create(o.t.Context(), r, metav1.CreateOptions{})
	return err
}

func (o *operator) deleteClusterScoped() error {
	return o.cluster.client.RbacV1().ClusterRoles().Delete(o.t.Context(), "e2e-role", metav1.DeleteOptions{})
}
