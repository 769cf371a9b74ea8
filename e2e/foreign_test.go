// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/go-logr/logr"
)

// servedThere dials a Service's webhooks at an address of this machine.
const servedThere = `apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: served-there}
spec:
  webhooks: [%q]
  endpoints: [{address: %q, serverName: %q, caFile: %q}]
`

// Pod Security's own webhook server, with the manifest that it is published with.
func TestPodSecurityWebhook(t *testing.T) {
	c := shared.east
	port := startPodSecurity(t, c)
	manifest, err := os.ReadFile(filepath.Join(moduleDir(t, "kubernetes", "k8s.io/pod-security-admission"), "webhook/manifests/70-validatingwebhookconfiguration.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dispatch(t, []*cluster{c}, string(manifest),
		fmt.Sprintf(servedThere, "pod-security-webhook.kubernetes.io/*", "127.0.0.1:"+port, "policy.webhooks.svc", shared.path("ca.crt")))
	restricted := c.namespace(t, map[string]string{"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"})
	eventually(t, "Pod Security knows the namespace", func() error {
		err := c.createPod(t.Context(), restricted, "privileged")
		if err == nil || !strings.Contains(err.Error(), `violates PodSecurity "restricted:latest"`) {
			return fmt.Errorf("the client sees %v", err) //nolint:errorlint // it may be nil
		}
		return nil
	})
	if err := c.createPod(t.Context(), c.namespace(t, nil), "privileged"); err != nil {
		t.Errorf("in a namespace without a level: %v", err)
	}
	out, err := c.kubectl(t, "create", "deployment", "web", "-n", restricted, "--image", "registry.example.com/web:v1")
	if err != nil || !strings.Contains(out, `Warning: would violate PodSecurity "restricted:latest"`) {
		t.Errorf("kubectl prints %s, %v", out, err)
	}
}

// startPodSecurity returns the port of a Pod Security webhook that watches c. The
// API server's own Pod Security does nothing here: the levels of its defaults.
func startPodSecurity(t *testing.T, c *cluster) string {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.write("pod-security.yaml", "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n"); err != nil {
		t.Fatal(err)
	}
	p, err := start(c.dir, shared.programs.podSecurity, "--kubeconfig", c.kubeconfig, "--config", "pod-security.yaml",
		"--bind-address", "127.0.0.1", "--secure-port", port,
		"--tls-cert-file", shared.path("webhooks.crt"), "--tls-private-key-file", shared.path("webhooks.key"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.End)
	if err := p.Until("serving", func() bool { return answers("https://127.0.0.1:" + port + "/readyz") }); err != nil {
		t.Fatal(err)
	}
	return port
}

// moduleDir returns where the files of a module lie that the module in a
// directory requires.
func moduleDir(t *testing.T, in, module string) string {
	t.Helper()
	out, err := exec.Command("go", "-C", in, "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// answers reports whether a URL answers 200.
func answers(url string) bool {
	resp, err := shared.webhooks.client.Get(url)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

const controllerRuntime = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: controller-runtime}
webhooks:
- name: validate.controller-runtime.example.com
  clientConfig: {service: {namespace: webhooks, name: policy, path: /validate--v1-configmap}}
  rules: &rules [{operations: [CREATE, UPDATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps], scope: Namespaced}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: controller-runtime}
webhooks:
- name: mutate.controller-runtime.example.com
  clientConfig: {service: {namespace: webhooks, name: policy, path: /mutate--v1-configmap}}
  rules: [{operations: [CREATE, UPDATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps], scope: Namespaced}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`

// A webhook server made with controller-runtime, as most are.
func TestControllerRuntimeWebhook(t *testing.T) {
	c := shared.east
	port := startControllerRuntime(t)
	dispatch(t, []*cluster{c}, controllerRuntime,
		fmt.Sprintf(servedThere, "controller-runtime/*", "127.0.0.1:"+port, "policy.webhooks.svc", shared.path("ca.crt")))
	namespace := c.namespace(t, nil)
	create := func(name string) (*corev1.ConfigMap, error) {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		return c.client.CoreV1().ConfigMaps(namespace).Create(t.Context(), m, metav1.CreateOptions{})
	}
	m, err := create("good")
	if err != nil || m.Data["defaulted"] != "yes" {
		t.Errorf("created %v, %v", m, err)
	}
	if _, err := create("bad"); err == nil || !strings.Contains(err.Error(), "bad is no name") {
		t.Errorf("the client sees %v", err)
	}
}

// policy is a defaulter and validator in the way of controller-runtime.
type policy struct{}

func (policy) Default(_ context.Context, m *corev1.ConfigMap) error {
	m.Data = map[string]string{"defaulted": "yes"}
	return nil
}

func (policy) ValidateCreate(_ context.Context, m *corev1.ConfigMap) (admission.Warnings, error) {
	if m.Name == "bad" {
		return nil, errors.New("bad is no name")
	}
	return nil, nil
}

func (p policy) ValidateUpdate(ctx context.Context, _, m *corev1.ConfigMap) (admission.Warnings, error) {
	return p.ValidateCreate(ctx, m)
}

func (policy) ValidateDelete(context.Context, *corev1.ConfigMap) (admission.Warnings, error) {
	return nil, nil
}

// startControllerRuntime returns the port of the server.
func startControllerRuntime(t *testing.T) string {
	t.Helper()
	log.SetLogger(logr.Discard())
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: number, CertDir: shared.dir, CertName: "webhooks.crt", KeyName: "webhooks.key"})
	server.Register("/validate--v1-configmap", admission.WithValidator(scheme.Scheme, policy{}))
	server.Register("/mutate--v1-configmap", admission.WithDefaulter(scheme.Scheme, policy{}))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the server: %v", err)
		}
	})
	eventually(t, "the server serves", func() error { return server.StartedChecker()(nil) })
	return port
}
