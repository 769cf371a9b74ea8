// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const tokenAudience = "https://dispatcher.example.com/tokens"

// issuingCluster is the Cluster of a kube-apiserver that issues its own credential.
const issuingCluster = `apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: issuing}
spec:
  authentication:
    jwt: {issuer: "https://issuing.example.com", audiences: ["` + tokenAudience + `"], subjects: ["system:serviceaccount:kube-system:webhook-auth"], jwksFile: issuing.jwks}
`

const presentsToken = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionWebhook
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: %[1]q}
- name: MutatingAdmissionWebhook
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: %[1]q}
`

// token has a cluster issue a token for a ServiceAccount, which it makes.
func (c *cluster) token(t *testing.T, namespace, account, audience string) string {
	t.Helper()
	accounts := c.client.CoreV1().ServiceAccounts(namespace)
	eventually(t, "the ServiceAccount is there", func() error {
		_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
		if err != nil && strings.Contains(err.Error(), "already exists") {
			return nil
		}
		return err
	})
	r, err := accounts.CreateToken(t.Context(), account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, ExpirationSeconds: new(int64(600))},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Status.Token
}

// TestTokens: a kube-apiserver that presents a token that it has issued itself is its
// Cluster, by the keys that it shows. Other tokens of the same key get nowhere.
func TestTokens(t *testing.T) {
	progress("%s", t.Name())
	dir := filepath.Join(shared.dir, "issuing")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file, kubeconfig := filepath.Join(dir, "token"), filepath.Join(dir, "caller.kubeconfig")
	for name, text := range map[string]string{
		file:       "not-yet",
		kubeconfig: fmt.Sprintf("apiVersion: v1\nkind: Config\nusers: [{name: %q, user: {tokenFile: %q}}]\n", shared.front.address(), file),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := shared.startCluster(clusterOptions{name: "issuing", admission: fmt.Sprintf(presentsToken, kubeconfig)})
	t.Cleanup(c.close)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := c.client.Discovery().RESTClient().Get().AbsPath("/openid/v1/jwks").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	good := c.token(t, "kube-system", "webhook-auth", tokenAudience)
	if err := os.WriteFile(file, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}

	d, err := shared.registry(onlyInIssuing, readiness)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"registry/clusters.yaml": issuingCluster, "registry/issuing.jwks": string(keys),
		"dispatcher.yaml": strings.Replace(fmt.Sprintf(processConfiguration, shared.dir, shared.front.address()), "tls: {", "tls: {clientAuth: IfGiven, ", 1),
	} {
		if err := d.write(name, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.serve(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the dispatcher's log ends:\n%s", d.process.Tail())
		}
		shared.front.point("")
		d.process.End()
	})
	shared.front.point(d.address)
	registration, err := d.registration("issuing")
	if err != nil {
		t.Fatal(err)
	}
	c.register(t, registration)
	shared.webhooks.handle("/issuing", deny(http.StatusForbidden, "by token"))
	_, err = c.client.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "by token") {
		t.Errorf("the kube-apiserver is answered %v", err)
	}

	for name, token := range map[string]string{
		"of another ServiceAccount": c.token(t, "default", "webhook-auth", tokenAudience),
		"for another audience":      c.token(t, "kube-system", "webhook-auth", tokenAudience+"/"),
		"of another issuer":         shared.alone.token(t, "kube-system", "webhook-auth", tokenAudience),
		"that is changed":           good[:len(good)-4] + "AAAA",
	} {
		if status := d.show(t, "issuing", token); status != http.StatusForbidden {
			t.Errorf("a token %s: HTTP status %d", name, status)
		}
	}
	if status := d.show(t, "issuing", good); status != http.StatusOK {
		t.Errorf("the good token: HTTP status %d", status)
	}
}

const onlyInIssuing = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: issuing}
webhooks:
- name: issuing.e2e.example.com
  clientConfig: {url: "$URL/issuing", caBundle: $CA}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [secrets], scope: Namespaced}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`

// show sends a review with a token, and certificates if there are any, and returns the
// status.
func (d *dispatcher) show(t *testing.T, cluster, token string, certificates ...tls.Certificate) int {
	t.Helper()
	return d.post(t, cluster, token, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u"}}`, certificates...)
}

func (d *dispatcher) post(t *testing.T, cluster, token, body string, certificates ...tls.Certificate) int {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: shared.pki.Pool(), Certificates: certificates, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+d.address+"/v1/clusters/"+cluster+"/validate?timeout=5s", bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}
