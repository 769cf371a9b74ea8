// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/internal/harness/process"
)

// behindForwarder is the Cluster that alone is: to others it presents nothing.
const behindForwarder = `apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: alone}
spec: {authentication: {certificate: {commonNames: [forwarded]}}, timeoutSeconds: 10}
`

// forwardedWebhooks fail closed for Secrets, and open for ServiceAccounts.
const forwardedWebhooks = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: forwarded}
webhooks:
- name: secrets.e2e.example.com
  clientConfig: {url: "$URL/forwarded", caBundle: $CA}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [secrets], scope: Namespaced}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
- name: accounts.e2e.example.com
  clientConfig: {url: "$URL/forwarded", caBundle: $CA}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [serviceaccounts], scope: Namespaced}]
  failurePolicy: Ignore
  sideEffects: None
  admissionReviewVersions: [v1]
`

// startForwarder starts a dispatcher-forward before the front at a port.
func startForwarder(t *testing.T, port string) *process.Process {
	t.Helper()
	w := shared
	p, err := start(w.dir, w.programs.forwarder, "--url", "https://"+w.front.address(), "--ca-file", "ca.crt",
		"--client-cert-file", "forwarded.crt", "--client-key-file", "forwarded.key", "--cert-file", "forwarder.crt", "--key-file", "forwarder.key",
		"--listen", "127.0.0.1:"+port, "--admin-listen", "127.0.0.1:0", "--lame-duck", "0s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the forwarder's log ends:\n%s", p.Tail())
		}
		p.End()
	})
	return p
}

// TestForwarder: a kube-apiserver without a credential calls a Service. What it gets is what
// the dispatcher says, and an outage of the forwarder is to it what one of the dispatcher is.
func TestForwarder(t *testing.T) {
	c := shared.alone
	for name, names := range map[string][]string{"forwarded": nil, "forwarder": {"forwarder.default.svc"}} {
		if _, err := shared.issue(name, names...); err != nil {
			t.Fatal(err)
		}
	}
	d := dispatchAs(t, behindForwarder, nil, forwardedWebhooks)
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	forwarder := startForwarder(t, port)
	c.apply(t, "{apiVersion: v1, kind: Service, metadata: {name: forwarder, namespace: default}, spec: {type: ExternalName, externalName: localhost}}")
	registration, err := d.registration("alone", "--service", "default/forwarder:"+port, "--service-ca", shared.path("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(registration, "url: http") || !strings.Contains(registration, "name: forwarder") {
		t.Fatalf("the registration names no Service:\n%s", registration)
	}
	c.register(t, registration)
	shared.webhooks.handle("/forwarded", deny(http.StatusForbidden, "said the webhook"))

	namespace, n := c.namespace(t, nil), 0
	secret := func() error {
		n++
		_, err := c.client.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("s", n)}}, metav1.CreateOptions{})
		return err
	}
	account := func() error {
		n++
		_, err := c.client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("a", n)}}, metav1.CreateOptions{})
		return err
	}
	decided := func(when string) {
		t.Helper()
		eventually(t, when+", the webhook decides", func() error {
			for _, err := range []error{secret(), account()} {
				if err == nil || !strings.Contains(err.Error(), "said the webhook") {
					return fmt.Errorf("the answer is %v", err) //nolint:errorlint // it may be nil
				}
			}
			return nil
		})
	}
	fails := func(when string) {
		t.Helper()
		if err := secret(); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
			t.Errorf("%s, what fails closed is answered %v", when, err)
		}
		if err := account(); err != nil {
			t.Errorf("%s, what fails open is answered %v", when, err)
		}
	}
	decided("with both up")
	if calls := shared.webhooks.callsOf("/forwarded"); len(calls) == 0 || calls[0].header.Get("Admission-Cluster") != "alone" {
		t.Errorf("the webhook was called for %v", calls)
	}
	d.process.Kill()
	shared.front.point("")
	fails("with the dispatcher gone")
	if err := d.serve(); err != nil {
		t.Fatal(err)
	}
	shared.front.point(d.address)
	decided("with the dispatcher back")
	forwarder.Kill()
	fails("with the forwarder gone")
	startForwarder(t, port)
	decided("with the forwarder back")
}
