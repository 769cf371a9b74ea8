// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var getOptions = metav1.GetOptions{}

// writeCaller writes what makes a kube-apiserver authenticate to the dispatcher:
// what "dispatcher registration --caller" prints, with paths of this test.
func (w *world) writeCaller(c *cluster, o clusterOptions) error {
	if _, err := w.issue(o.caller); err != nil {
		return err
	}
	d, err := w.registry()
	if err != nil {
		return err
	}
	flags := []string{"--caller"}
	if o.manifests != "" {
		flags = append(flags, "--static")
	}
	printed, err := d.registration(o.caller, flags...)
	if err != nil {
		return err
	}
	const there = "/etc/kubernetes/admission-dispatcher/"
	printed = strings.NewReplacer(
		there+"kubeconfig", filepath.Join(c.dir, "caller.kubeconfig"),
		there+"client.crt", w.path(o.caller+".crt"),
		there+"client.key", w.path(o.caller+".key"),
		there+"mutate", filepath.Join(o.manifests, "mutate"),
		there+"validate", filepath.Join(o.manifests, "validate"),
	).Replace(printed)
	admission, caller, ok := strings.Cut(printed, "\n---\n")
	if !ok {
		return fmt.Errorf("two documents expected:\n%s", printed)
	}
	if err := c.write("admission.yaml", admission); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.dir, "caller.kubeconfig"), []byte(caller), 0o600)
}

// readiness are webhooks that deny ConfigMaps which ask whether webhooks are
// called yet, as of this registration: by a number that grows.
const readiness = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: ready}
webhooks:
- name: ready.e2e.example.com
  clientConfig: {url: "$URL/ready", caBundle: $CA}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps], scope: Namespaced}]
  matchConditions: [{name: asks, expression: 'has(object.metadata.name) && object.metadata.name.startsWith("are-you-there-")'}]
  failurePolicy: Ignore
  sideEffects: None
  admissionReviewVersions: [v1]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: ready}
webhooks:
- name: mutating-ready.e2e.example.com
  clientConfig: {url: "$URL/ready-mutating", caBundle: $CA}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps], scope: Namespaced}]
  matchConditions: [{name: asks, expression: 'has(object.metadata.name) && object.metadata.name.startsWith("are-you-there-")'}]
  failurePolicy: Ignore
  sideEffects: None
  admissionReviewVersions: [v1]
`

var asked atomic.Int64

// register applies webhook configurations, waits until the apiserver calls by
// them, and removes them at the end of the test.
func (c *cluster) register(t *testing.T, manifests string) {
	t.Helper()
	c.apply(t, manifests)
	c.awaitCalls(t)
}

// awaitCalls asks with ConfigMaps that are never stored until both phases answer.
func (c *cluster) awaitCalls(t *testing.T) {
	t.Helper()
	there := deny(418, "I am here")
	shared.webhooks.handle("/ready", there)
	shared.webhooks.handle("/ready-mutating", func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		if strings.Contains(r.Name, "mutating") {
			return there(r)
		}
		return allow(r)
	})
	for _, phase := range []string{"validating", "mutating"} {
		eventually(t, c.name+": the "+phase+" webhooks are called", func() error {
			m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("are-you-there-%s-%d", phase, asked.Add(1))}}
			_, err := c.client.CoreV1().ConfigMaps(c.asks).Create(t.Context(), m, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err == nil || !strings.Contains(err.Error(), "I am here") {
				return fmt.Errorf("the answer is %v", err) //nolint:errorlint // it may be nil
			}
			return nil
		})
	}
}

// eventually polls until try returns no error.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-time.After(50 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	t.Fatalf("%s: not within %v: %v", what, patience, err)
}
