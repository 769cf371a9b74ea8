// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// slowIgnore are four mutating webhooks that hang, each with 10 s and Ignore: what
// kubernetes#128162 is about. "alone", the API server adds their timeouts up.
var slowIgnore = func() string {
	head := `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: slow}
webhooks:
`
	for i := range 4 {
		head += fmt.Sprintf(`- name: slow-%d.e2e.example.com
  clientConfig: {url: "$URL/hang-%[1]d", caBundle: $CA}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [services], scope: Namespaced}]
  failurePolicy: Ignore
  timeoutSeconds: 10
  sideEffects: None
  admissionReviewVersions: [v1]
`, i)
	}
	return head
}()

// outage is one admission, made in a cluster that calls its webhooks itself and in
// one that calls the dispatcher, at the same time.
func outage(t *testing.T, do func(c *cluster) error) (alone, behind error) {
	t.Helper()
	var wg sync.WaitGroup
	wg.Go(func() { alone = do(shared.alone) })
	wg.Go(func() { behind = do(shared.east) })
	wg.Wait()
	return alone, behind
}

// register both: directly, and through the dispatcher.
func bothWays(t *testing.T, manifests string) {
	t.Helper()
	shared.alone.register(t, manifests+"---\n"+readiness)
	dispatch(t, []*cluster{shared.east}, manifests)
}

// Four webhooks with failurePolicy Ignore that hang for 10 s: the API server gives
// up on the request as a whole (kubernetes#128162); the dispatcher lets it pass
// within the 10 s of its own registration.
func TestSlowIgnoreWebhooksAddUp(t *testing.T) {
	bothWays(t, slowIgnore)
	for i := range 4 {
		shared.webhooks.handle(fmt.Sprintf("/hang-%d", i), hang)
	}
	namespace := map[*cluster]string{shared.alone: shared.alone.namespace(t, nil), shared.east: shared.east.namespace(t, nil)}
	alone, behind := outage(t, func(c *cluster) error {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		_, err := c.client.CoreV1().Services(namespace[c]).Create(t.Context(), s, metav1.CreateOptions{})
		return err
	})
	if alone == nil {
		t.Error("alone, the API server waits for four webhooks: this test shows nothing")
	}
	if behind != nil {
		t.Errorf("through the dispatcher: %v", behind)
	}
	t.Logf("alone: %v", alone)
}

const leases = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: all}
webhooks:
- name: all.e2e.example.com
  clientConfig: {url: "$URL/hang", caBundle: $CA}
  rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: [leases, services], scope: "*"}]
  failurePolicy: Ignore
  timeoutSeconds: 10
  sideEffects: None
  admissionReviewVersions: [v1]
`

// A dead Ignore webhook that matches leases, and a client with 5 s: the lease is
// lost (kubernetes#90217); through the dispatcher nobody asks about leases.
func TestDeadIgnoreWebhookOnLeases(t *testing.T) {
	bothWays(t, leases)
	shared.webhooks.handle("/hang", hang)
	namespace := map[*cluster]string{shared.alone: shared.alone.namespace(t, nil), shared.east: shared.east.namespace(t, nil)}
	alone, behind := outage(t, func(c *cluster) error {
		config := c.as("admin-token")
		config.Timeout = 5 * time.Second
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		_, err = client.CoordinationV1().Leases(namespace[c]).Create(t.Context(), lease("leader"), metav1.CreateOptions{})
		return err
	})
	if alone == nil {
		t.Error("alone, the lease is not lost: this test shows nothing")
	}
	if behind != nil {
		t.Errorf("through the dispatcher: %v", behind)
	}
	t.Logf("alone: %v", alone)
}

func lease(name string) *coordinationv1.Lease {
	who := "e2e"
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &who}}
}

const failClosed = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: strict}
webhooks:
- name: strict.e2e.example.com
  clientConfig: {url: "https://127.0.0.1:1/strict", caBundle: $CA}
  rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: [pods, nodes, nodes/status, leases, services], scope: "*"}]
  failurePolicy: Fail
  timeoutSeconds: 5
  sideEffects: None
  admissionReviewVersions: [v1]
`

// A Fail webhook that is down, and the pods that would bring it back live in
// kube-system: alone, the cluster is locked; behind the dispatcher it heals.
func TestFailWebhookDownWhileKubeSystemRecovers(t *testing.T) {
	bothWays(t, failClosed)
	name := fmt.Sprintf("recovery-%d", asked.Add(1))
	alone, behind := outage(t, func(c *cluster) error { return c.createPod(t.Context(), "kube-system", name) })
	if alone == nil || !strings.Contains(alone.Error(), "failed calling webhook") {
		t.Errorf("alone: %v", alone)
	}
	if behind != nil {
		t.Errorf("through the dispatcher: %v", behind)
	}
	err := shared.east.createPod(t.Context(), shared.east.namespace(t, nil), name)
	if err == nil || !strings.Contains(err.Error(), `failed calling webhook "strict.e2e.example.com"`) {
		t.Errorf("elsewhere the policy still holds, but: %v", err)
	}
}

func (c *cluster) createPod(ctx context.Context, namespace, name string) error {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/web:v1"}}},
	}
	_, err := c.client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{})
	return err
}

// The whole dispatcher is down: kube-system, leases and node heartbeats go on,
// because the registration says so, and everything else fails closed.
func TestDispatcherDown(t *testing.T) {
	c := shared.east
	nodes := c.client.CoreV1().Nodes()
	node := fmt.Sprintf("n%d", asked.Add(1))
	if _, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	d := dispatch(t, []*cluster{c}, failClosed)
	namespace := c.namespace(t, nil)
	d.process.Kill()
	shared.front.point("")
	name := fmt.Sprintf("down-%d", asked.Add(1))
	if err := c.createPod(t.Context(), "kube-system", name); err != nil {
		t.Errorf("a pod in kube-system: %v", err)
	}
	if _, err := c.client.CoordinationV1().Leases(namespace).Create(t.Context(), lease(name), metav1.CreateOptions{}); err != nil {
		t.Errorf("a lease: %v", err)
	}
	if _, err := c.client.CoordinationV1().Leases("kube-node-lease").Create(t.Context(), lease(name), metav1.CreateOptions{}); err != nil {
		t.Errorf("a node's lease: %v", err)
	}
	if err := c.heartbeat(t, node); err != nil {
		t.Errorf("a node's heartbeat: %v", err)
	}
	if err := c.createPod(t.Context(), namespace, name); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("a pod elsewhere: %v", err)
	}
}

// heartbeat patches a node's status as its kubelet, in the group of nodes.
func (c *cluster) heartbeat(t *testing.T, node string) error {
	config := c.as("admin-token")
	config.Impersonate.UserName, config.Impersonate.Groups = "system:node:"+node, []string{"system:nodes", "system:masters"}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	now := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
	_, err = client.CoreV1().Nodes().Patch(t.Context(), node, types.StrategicMergePatchType, []byte(now), metav1.PatchOptions{}, "status")
	return err
}

const quick = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: quick}
webhooks:
- name: quick.e2e.example.com
  clientConfig: {url: "$URL/quick", caBundle: $CA}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps], scope: Namespaced}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`

// The dispatcher is replaced four times under clients that never pause. No call
// of theirs fails, and the webhook is asked about each.
func TestRollingRestart(t *testing.T) {
	const restarts, callers = 4, 4
	c := shared.east
	d := dispatch(t, []*cluster{c}, quick)
	shared.webhooks.handle("/quick", allow)
	namespace := c.namespace(t, nil)
	load := startLoad(t, c, namespace, callers)
	for range restarts {
		before, old := load.calls(), d.process
		if err := d.serve(); err != nil {
			t.Fatal(err)
		}
		shared.front.point(d.address)
		old.End()
		load.until(before + 50)
	}
	failures := load.end()
	for _, err := range failures {
		t.Errorf("a call failed: %v", err)
	}
	total := load.calls()
	if made, err := c.client.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{}); err != nil || int64(len(made.Items)) != total {
		t.Errorf("%d objects of %d calls, %v", len(made.Items), total, err)
	}
	if n := int64(len(shared.webhooks.callsOf("/quick"))); n < total {
		t.Errorf("the webhook was asked %d times about %d calls", n, total)
	}
	t.Logf("%d calls, %d restarts, %d failed", total, restarts, len(failures))
}
