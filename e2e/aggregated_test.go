// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// aggregating is the Cluster of a kube-apiserver with an extension API server behind it.
const aggregating = `apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec:
  authentication:
    certificate: {commonNames: [east]}
    callers:
    - {name: wardle, certificate: {commonNames: [wardle]}, apiGroups: [%s]}
`

const flunderWebhooks = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: flunders}
webhooks:
- name: flunders.e2e.example.com
  clientConfig: {url: "$URL/flunders", caBundle: $CA}
  rules: [{operations: [CREATE], apiGroups: [wardle.example.com], apiVersions: [v1alpha1], resources: [flunders], scope: Namespaced}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`

const apiService = `apiVersion: v1
kind: Service
metadata: {name: wardle, namespace: default}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1alpha1.wardle.example.com}
spec:
  group: wardle.example.com
  version: v1alpha1
  groupPriorityMinimum: 1000
  versionPriority: 15
  service: {namespace: default, name: wardle, port: %s}
  caBundle: %s
`

var flunders = schema.GroupVersionResource{Group: "wardle.example.com", Version: "v1alpha1", Resource: "flunders"}

// startAggregating starts a kube-apiserver, which is the Cluster east, and the sample API
// server behind it, which presents the certificate wardle.
func startAggregating(t *testing.T) *cluster {
	t.Helper()
	w := shared
	for name, names := range map[string][]string{"wardle": nil, "wardle-serving": {"wardle.default.svc"}, "aggregator": nil} {
		if _, err := w.issue(name, names...); err != nil {
			t.Fatal(err)
		}
	}
	c, err := w.startCluster(clusterOptions{name: "aggregating", caller: "east", flags: []string{
		"--requestheader-client-ca-file", w.path("ca.crt"), "--requestheader-allowed-names", "aggregator",
		"--requestheader-username-headers", "X-Remote-User", "--requestheader-group-headers", "X-Remote-Group", "--requestheader-extra-headers-prefix", "X-Remote-Extra-",
		"--proxy-client-cert-file", w.path("aggregator.crt"), "--proxy-client-key-file", w.path("aggregator.key"),
	}})
	t.Cleanup(c.close)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(c.dir, "wardle")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	// The files of the kube-apiserver, with the other certificate.
	for _, name := range []string{"admission.yaml", "caller.kubeconfig"} {
		text, err := os.ReadFile(filepath.Join(c.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		own := strings.NewReplacer(filepath.Join(c.dir, "caller.kubeconfig"), filepath.Join(dir, "caller.kubeconfig"),
			w.path("east.crt"), w.path("wardle.crt"), w.path("east.key"), w.path("wardle.key")).Replace(string(text))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(own), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	server, err := start(dir, w.programs.wardle,
		"--etcd-servers", w.etcdURL, "--etcd-prefix", "/wardle", "--bind-address", "127.0.0.1", "--secure-port", port,
		"--tls-cert-file", w.path("wardle-serving.crt"), "--tls-private-key-file", w.path("wardle-serving.key"),
		"--kubeconfig", c.kubeconfig, "--authentication-kubeconfig", c.kubeconfig, "--authorization-kubeconfig", c.kubeconfig,
		"--admission-control-config-file", "admission.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the sample API server's log ends:\n%s", server.Tail())
		}
		server.Kill()
	})
	c.apply(t, fmt.Sprintf(apiService, port, base64.StdEncoding.EncodeToString(w.pki.PEM)))
	eventually(t, "the API group is served", func() error {
		_, err := c.objects.Resource(flunders).Namespace("default").List(t.Context(), metav1.ListOptions{})
		return err
	})
	return c
}

// flunder creates one.
func (c *cluster) flunder(t *testing.T, name string) error {
	t.Helper()
	_, err := c.objects.Resource(flunders).Namespace("default").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": map[string]any{"name": name},
	}}, metav1.CreateOptions{})
	return err
}

// TestAggregatedAPIServer: an API server that others wrote reads the registration from the
// core API, calls by it with a credential of its own, and is served for its own group. What
// its Cluster does not list is refused, and the registration's failurePolicy decides.
func TestAggregatedAPIServer(t *testing.T) {
	progress("%s", t.Name())
	c := startAggregating(t)
	d := dispatchAs(t, fmt.Sprintf(aggregating, "wardle.example.com"), nil, flunderWebhooks)
	registration, err := d.registration("east")
	if err != nil {
		t.Fatal(err)
	}
	c.register(t, registration)
	shared.webhooks.handle("/flunders", deny(http.StatusForbidden, "no flunders today"))
	eventually(t, "the webhook decides about flunders", func() error {
		if err := c.flunder(t, "denied"); err == nil || !strings.Contains(err.Error(), "no flunders today") {
			return fmt.Errorf("the answer is %v", err) //nolint:errorlint // it may be nil
		}
		return nil
	})
	shared.webhooks.handle("/flunders", allow)
	if err := c.flunder(t, "allowed"); err != nil {
		t.Errorf("an allowed flunder: %v", err)
	}
	calls := shared.webhooks.callsOf("/flunders")
	if len(calls) != 1 || calls[0].header.Get("Admission-Cluster") != "east" || calls[0].request.Resource.Group != "wardle.example.com" {
		t.Errorf("the webhook was called %v", calls)
	}

	wardle, err := tls.LoadX509KeyPair(shared.path("wardle.crt"), shared.path("wardle.key"))
	if err != nil {
		t.Fatal(err)
	}
	const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"group":"%[1]s","version":"v1","kind":"X"},` +
		`"resource":{"group":"%[1]s","version":"v1","resource":"x"},"operation":"CREATE","userInfo":{},"object":{}}}`
	for group, want := range map[string]int{"wardle.example.com": http.StatusOK, "": http.StatusForbidden, "apps": http.StatusForbidden} {
		if status := d.post(t, "east", "", fmt.Sprintf(review, group), wardle); status != want {
			t.Errorf("its certificate and the group %q: HTTP status %d, want %d", group, status, want)
		}
	}

	if err := d.write("registry/clusters.yaml", fmt.Sprintf(aggregating, "other.example.com")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a group that is not listed is refused", func() error {
		if err := c.flunder(t, fmt.Sprint("unlisted-", asked.Add(1))); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
			return fmt.Errorf("the answer is %v", err) //nolint:errorlint // it may be nil
		}
		return nil
	})
}
