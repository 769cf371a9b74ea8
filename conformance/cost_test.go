// SPDX-License-Identifier: Apache-2.0

//go:build linux

package conformance

import (
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	webhooktesting "k8s.io/apiserver/pkg/admission/plugin/webhook/testing"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

var (
	cost         = flag.Bool("cost", false, "measure the cost in the caller; without it TestCost only shows that this still works")
	costInFlight = flag.Int("cost-in-flight", 1, "admissions at once")
)

//go:embed testdata/cost-pod.yaml
var costPod []byte

// TestCost compares the API server's validating plugin calling webhooks directly
// with the same plugin calling the dispatcher, which calls them: the CPU and the
// allocations of the plugin's process, and the CPU of the dispatcher's. Figures
// are reported and never fail it; an admission that is not allowed does.
func TestCost(t *testing.T) {
	if dir := os.Getenv(costWebhooks); dir != "" {
		serveWebhooks(t, dir)
		return
	}
	rounds, batch := 1, 3
	if *cost {
		rounds, batch = 9, 200
	}
	rows, dispatcher := startCost(t, []int{1, 5, 10, mostWebhooks})
	m := meter{dispatcher: dispatcher, batch: batch, inFlight: *costInFlight}
	for _, r := range rows { // opens the connections and fills the pools
		m.run(t, r.directly)
		m.run(t, r.through)
	}
	for range rounds {
		for _, r := range rows {
			r.direct = append(r.direct, m.measure(t, r.directly))
			r.via = append(r.via, m.measure(t, r.through))
		}
	}
	t.Logf("per admission, %d in flight, %d rounds of %d; median (min-max)\n%s", m.inFlight, rounds, batch, report(rows))
}

// costRow is one number of webhooks, with one usage a round.
type costRow struct {
	webhooks          int
	directly, through *plainCaller
	direct, via       []usage
}

// startCost starts the webhooks and one dispatcher, which serves each row as a
// cluster of its own, and returns the dispatcher's process id.
func startCost(t *testing.T, counts []int) (rows []*costRow, dispatcher int) {
	t.Helper()
	dir := t.TempDir()
	pod := readPod(t)
	webhooks := startWebhooks(t, dir)
	for _, n := range counts {
		hooks := webhooks.hooks(n)
		register(t, dir, clusterOf(n), hooks)
		rows = append(rows, &costRow{webhooks: n, directly: newCaller(t, pod, hooks, &rest.Config{})})
	}
	p := serve(t, dir)
	for _, r := range rows {
		cluster := clusterOf(r.webhooks)
		issue(t, p.pki, dir, cluster)
		hooks := []admissionregistrationv1.ValidatingWebhook{outer(p, cluster, "validate")}
		r.through = newCaller(t, pod, hooks, &rest.Config{TLSClientConfig: rest.TLSClientConfig{
			CertFile: filepath.Join(dir, cluster+".crt"),
			KeyFile:  filepath.Join(dir, cluster+".key"),
		}})
	}
	return rows, p.pid
}

func clusterOf(webhooks int) string { return fmt.Sprintf("cost-%d", webhooks) }

// register writes the webhooks into the registry, for this cluster alone.
func register(t *testing.T, dir, cluster string, hooks []admissionregistrationv1.ValidatingWebhook) {
	t.Helper()
	configuration, err := yaml.Marshal(admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: cluster},
		Webhooks:   hooks,
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "registry/"+cluster+".yaml", configuration)
	write(t, dir, "registry/"+cluster+"-cluster.yaml", fmt.Appendf(nil, costCluster, cluster))
}

const costCluster = `apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: %[1]q, labels: {case: %[1]q}}
spec:
  authentication: {certificate: {commonNames: [%[1]q]}}
---
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: %[1]q}
spec:
  webhooks: ["%[1]s/*"]
  clusterSelector: {matchLabels: {case: %[1]q}}
  onlySelectedClusters: true
`

// plainCaller is an API server's validating plugin, with its connections, whose users
// create one pod after another.
type plainCaller struct {
	pod     *corev1.Pod
	plugin  *validating.Plugin
	objects admission.ObjectInterfaces
}

func newCaller(t *testing.T, pod *corev1.Pod, hooks []admissionregistrationv1.ValidatingWebhook, credentials *rest.Config) *plainCaller {
	t.Helper()
	p, err := validating.NewValidatingAdmissionWebhook(nil)
	if err != nil {
		t.Fatal(err)
	}
	client, factory := webhooktesting.NewFakeValidatingDataSource(namespace, hooks, t.Context().Done())
	route{&url.URL{}, asCaller{credentials}}.prepare(t, p, client, factory)
	return &plainCaller{pod, p, webhooktesting.NewObjectInterfacesForTest()}
}

// admit asks for the creation of the pod.
func (c *plainCaller) admit(ctx context.Context) error {
	a := admission.NewAttributesRecord(c.pod, nil, c.pod.GroupVersionKind(), c.pod.Namespace, c.pod.Name,
		corev1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, &metav1.CreateOptions{}, false, creator)
	return c.plugin.Validate(ctx, a, c.objects)
}

var creator = &user.DefaultInfo{
	Name:   "system:serviceaccount:kube-system:replicaset-controller",
	UID:    "3c1f9a52-7d4e-4b0a-8f6e-2b9d1c7e5a40",
	Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
}

func readPod(t *testing.T) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(costPod, pod); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("a Pod of %d bytes", len(data))
	return pod
}
