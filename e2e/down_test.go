// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	random "math/rand/v2"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// guardsAll fails closed for whatever is written. Deletions pass, so that the
// test can take away what the API server then has to write.
const guardsAll = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: all}
webhooks:
- name: all.e2e.example.com
  clientConfig: {url: "https://127.0.0.1:1/all", caBundle: $CA}
  rules: [{operations: [CREATE, UPDATE], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"], scope: "*"}]
  failurePolicy: Fail
  timeoutSeconds: 5
  sideEffects: None
  admissionReviewVersions: [v1]
`

// A control plane is upgraded while the dispatcher is down and a webhook for
// everything fails closed: the API server that starts has bootstrap objects to
// write, and ends if it may not. Nodes join meanwhile.
func TestControlPlaneStartsWithTheDispatcherDown(t *testing.T) {
	progress("%s", t.Name())
	d, err := shared.registry(guardsAll)
	if err != nil {
		t.Fatal(err)
	}
	registration, err := d.registration("east")
	if err != nil {
		t.Fatal(err)
	}
	options := clusterOptions{name: "upgraded"}
	old, err := shared.startCluster(options)
	t.Cleanup(func() { old.close() })
	if err != nil {
		t.Fatal(err)
	}
	shared.front.point("")
	for _, o := range documents(t, old.fill(registration)) {
		resource, err := old.resource(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := resource.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the policy fails closed", func() error {
		if err := old.createPod(t.Context(), "default", "refused"); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
			return fmt.Errorf("the answer is %v", err) //nolint:errorlint // it may be nil
		}
		return nil
	})
	const role = "system:discovery"
	if err := old.client.RbacV1().ClusterRoles().Delete(t.Context(), role, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Service, once it is there, is deleted", func() error {
		return old.client.CoreV1().Services("default").Delete(t.Context(), "kubernetes", metav1.DeleteOptions{})
	})
	old.process.Kill()

	c, err := shared.startCluster(options)
	t.Cleanup(func() { c.close() })
	if err != nil {
		t.Fatalf("the API server does not start: %v", err)
	}
	eventually(t, "the role and the Service are there again", func() error {
		if _, err := c.client.RbacV1().ClusterRoles().Get(t.Context(), role, getOptions); err != nil {
			return err
		}
		_, err := c.client.CoreV1().Services("default").Get(t.Context(), "kubernetes", getOptions)
		return err
	})
	if err := c.joinNode(t); err != nil {
		t.Errorf("a node does not join: %v", err)
	}
	if err := c.createPod(t.Context(), "default", "refused"); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("the policy no longer holds: a pod gets %v", err)
	}
}

// joinNode does what a new node does: its bootstrap token asks for a certificate,
// a controller approves, the kubelet registers its node, and a controller makes
// that one schedulable.
func (c *cluster) joinNode(t *testing.T) error {
	t.Helper()
	const name = "joins"
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    certificateRequest(t, name),
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	token, err := c.impersonating("system:bootstrap:abcdef", "system:bootstrappers")
	if err != nil {
		return err
	}
	kubelet, err := c.impersonating("system:node:"+name, "system:nodes")
	if err != nil {
		return err
	}
	controller, err := c.impersonating("system:serviceaccount:kube-system:node-controller", "system:serviceaccounts", "system:serviceaccounts:kube-system")
	if err != nil {
		return err
	}
	requests := token.CertificatesV1().CertificateSigningRequests()
	made, err := requests.Create(t.Context(), request, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "e2e", Message: "approved"},
	}
	if _, err := controller.CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), name, made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}},
	}
	if _, err := kubelet.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err = controller.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{})
	return err
}

func certificateRequest(t *testing.T, node string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// impersonating returns a client that may do everything, as a user in groups.
func (c *cluster) impersonating(user string, groups ...string) (kubernetes.Interface, error) {
	return kubernetes.NewForConfig(c.impersonation(user, groups...))
}

func (c *cluster) impersonation(user string, groups ...string) *rest.Config {
	config := c.as("admin-token")
	config.Impersonate.UserName, config.Impersonate.Groups = user, append(slices.Clone(groups), "system:masters")
	return config
}

// mixed are webhooks of both failure policies that differ in rules, versions,
// scopes and selectors. Nobody serves them.
const mixed = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: mixed}
webhooks:
- name: pods.e2e.example.com
  clientConfig: &nobody {url: "https://127.0.0.1:1/", caBundle: $CA}
  rules: [{operations: [CREATE, UPDATE], apiGroups: [""], apiVersions: [v1], resources: [pods], scope: Namespaced}]
  namespaceSelector: &observed {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [monitoring]}]}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
- name: guarded.e2e.example.com
  clientConfig: *nobody
  rules: [{operations: ["*"], apiGroups: [""], apiVersions: ["*"], resources: [secrets, configmaps], scope: "*"}]
  objectSelector: {matchLabels: {guarded: "true"}}
  namespaceSelector: *observed
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
- name: scaling.e2e.example.com
  clientConfig: *nobody
  rules: [{operations: [CREATE], apiGroups: [autoscaling], apiVersions: [v1], resources: [horizontalpodautoscalers], scope: Namespaced}]
  namespaceSelector: *observed
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
- name: roles.e2e.example.com
  clientConfig: *nobody
  rules: [{operations: [DELETE, CREATE], apiGroups: [rbac.authorization.k8s.io], apiVersions: [v1], resources: [clusterroles], scope: Cluster}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
- name: everything.e2e.example.com
  clientConfig: *nobody
  rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"], scope: "*"}]
  failurePolicy: Ignore
  sideEffects: None
  admissionReviewVersions: [v1]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: mixed}
webhooks:
- name: services.e2e.example.com
  clientConfig: {url: "https://127.0.0.1:1/", caBundle: $CA}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [services], scope: Namespaced}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
- name: labels.e2e.example.com
  clientConfig: {url: "https://127.0.0.1:1/", caBundle: $CA}
  rules: [{operations: [CREATE], apiGroups: ["", apps], apiVersions: ["*"], resources: ["*"], scope: Namespaced}]
  failurePolicy: Ignore
  sideEffects: None
  admissionReviewVersions: [v1]
`

// breakGlass is a Cluster east with rules of its own beside the built-in ones.
const breakGlass = `apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: east, labels: {env: dev}}
spec:
  authentication: {certificate: {commonNames: [east]}}
  bypass: {rules: [{name: sandbox, namespaces: [sandbox]}]}
  failOpen: {rules: [{name: break-glass, groups: [break-glass]}]}
`

// With the dispatcher dead, each request of a cluster meets the verdict that it
// would meet with all its webhooks dead and the same bypasses.
func TestVerdictsWithTheDispatcherDown(t *testing.T) {
	const requests = 250
	progress("%s", t.Name())
	d, err := shared.registry(mixed)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.write("registry/clusters.yaml", breakGlass); err != nil {
		t.Fatal(err)
	}
	registration, err := d.registration("east")
	if err != nil {
		t.Fatal(err)
	}
	shared.front.point("")
	for _, name := range []string{"monitoring", "sandbox", "shop"} {
		for _, c := range []*cluster{shared.alone, shared.east} {
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
			c.apply(t, string(mustJSON(t, o)))
		}
	}
	shared.alone.apply(t, mixed)
	shared.east.apply(t, registration)
	for _, c := range []*cluster{shared.alone, shared.east} {
		eventually(t, c.name+": the policies fail closed", func() error {
			for _, r := range []downRequest{
				{resource: "pods", kind: "Pod", version: "v1", namespace: "shop", user: "ann"},
				{resource: "services", kind: "Service", version: "v1", namespace: "shop", user: "ann"},
			} {
				if r.failed(t, c) == nil {
					return fmt.Errorf("%+v is let in", r)
				}
			}
			return nil
		})
	}
	rng := random.New(random.NewPCG(1, 1))
	var denied, differ int
	for range requests {
		r := randomDownRequest(rng)
		alone, behind := r.failed(t, shared.alone), r.failed(t, shared.east)
		want := alone != nil && !r.excused()
		if behind == nil == want {
			differ++
			t.Errorf("%+v: with its webhooks dead %v, with the dispatcher dead %v", r, alone, behind)
		}
		if want {
			denied++
		}
	}
	if denied < requests/10 || denied > requests*9/10 {
		t.Errorf("%d of %d requests are denied: this test shows little", denied, requests)
	}
	t.Logf("%d requests, %d denied in both, %d differ", requests, denied, differ)
}

func mustJSON(t *testing.T, o *unstructured.Unstructured) []byte {
	t.Helper()
	data, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// downRequest is a dry run of a creation.
type downRequest struct {
	group, version, resource, kind string
	namespace                      string // empty: the cluster's
	user, userGroup                string
	guarded                        bool
}

func randomDownRequest(rng *random.Rand) downRequest {
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	r := [...]downRequest{
		{version: "v1", resource: "pods", kind: "Pod"},
		{version: "v1", resource: "configmaps", kind: "ConfigMap"},
		{version: "v1", resource: "secrets", kind: "Secret"},
		{version: "v1", resource: "services", kind: "Service"},
		{version: "v1", resource: "serviceaccounts", kind: "ServiceAccount"},
		{group: "apps", version: "v1", resource: "deployments", kind: "Deployment"},
		{group: "autoscaling", version: "v1", resource: "horizontalpodautoscalers", kind: "HorizontalPodAutoscaler"},
		{group: "autoscaling", version: "v2", resource: "horizontalpodautoscalers", kind: "HorizontalPodAutoscaler"},
		{group: "coordination.k8s.io", version: "v1", resource: "leases", kind: "Lease"},
		{group: "rbac.authorization.k8s.io", version: "v1", resource: "clusterroles", kind: "ClusterRole"},
		{version: "v1", resource: "nodes", kind: "Node"},
	}[rng.IntN(11)]
	if r.resource != "clusterroles" && r.resource != "nodes" {
		r.namespace = pick("shop", "shop", "default", "monitoring", "sandbox", "kube-system")
	}
	r.user = pick("ann", "ben", "system:apiserver", "system:node:n1")
	if r.user == "system:node:n1" {
		r.userGroup = "system:nodes"
	} else {
		r.userGroup = pick("developers", "developers", "break-glass")
	}
	r.guarded = rng.IntN(2) == 0
	return r
}

// excused reports whether a bypass or a failOpen rule holds for the request.
func (r downRequest) excused() bool {
	return r.user == "system:apiserver" || r.userGroup == "break-glass" ||
		slices.Contains([]string{"sandbox", "kube-system", "kube-node-lease"}, r.namespace) ||
		r.resource == "leases" || r.resource == "nodes" && r.userGroup == "system:nodes"
}

// failed returns the error of a call that failed closed; any other error of the
// request ends the test.
func (r downRequest) failed(t *testing.T, c *cluster) error {
	t.Helper()
	client, err := dynamic.NewForConfig(c.impersonation(r.user, r.userGroup))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{Object: downSpec(r.kind)}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: r.group, Version: r.version, Kind: r.kind})
	o.SetName(fmt.Sprintf("down-%d", asked.Add(1)))
	o.SetNamespace(r.namespace)
	if r.guarded {
		o.SetLabels(map[string]string{"guarded": "true"})
	}
	resource := client.Resource(schema.GroupVersionResource{Group: r.group, Version: r.version, Resource: r.resource})
	var target dynamic.ResourceInterface = resource
	if r.namespace != "" {
		target = resource.Namespace(r.namespace)
	}
	_, err = target.Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil && !strings.Contains(err.Error(), "failed calling webhook") {
		t.Fatalf("%s: %+v: %v", c.name, r, err)
	}
	return err
}

// downSpec is the least that an object of the kind must have.
func downSpec(kind string) map[string]any {
	pod := map[string]any{"containers": []any{map[string]any{"name": "main", "image": "registry.example.com/web:v1"}}}
	switch kind {
	case "Pod":
		return map[string]any{"spec": pod}
	case "Service":
		return map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}}
	case "Deployment":
		labels := map[string]any{"app": "web"}
		return map[string]any{"spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": pod},
		}}
	case "HorizontalPodAutoscaler":
		return map[string]any{"spec": map[string]any{
			"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": int64(3),
		}}
	}
	return map[string]any{}
}
