// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const onlyInProduction = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: production}
webhooks:
- name: production.e2e.example.com
  clientConfig: {url: "$URL/production", caBundle: $CA}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps], scope: Namespaced}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
---
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: production}
spec:
  webhooks: ["production/*"]
  clusterSelector: {matchLabels: {env: prod}}
  onlySelectedClusters: true
`

// The same action of the same user is allowed in one cluster and denied in the
// other, by one binding.
func TestTwoClustersOneBinding(t *testing.T) {
	dispatch(t, []*cluster{shared.east, shared.west}, onlyInProduction)
	shared.webhooks.handle("/production", deny(http.StatusForbidden, "not in production"))
	create := func(c *cluster) error {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: c.namespace(t, nil)}}
		_, err := c.client.CoreV1().ConfigMaps(m.Namespace).Create(t.Context(), m, metav1.CreateOptions{})
		return err
	}
	if err := create(shared.east); err != nil {
		t.Errorf("in east: %v", err)
	}
	if err := create(shared.west); err == nil || !strings.Contains(err.Error(), "not in production") {
		t.Errorf("in west: %v", err)
	}
	calls := shared.webhooks.callsOf("/production")
	if len(calls) != 1 || calls[0].header.Get("Admission-Cluster") != "west" {
		t.Errorf("%d calls %v, want one for west", len(calls), calls)
	}
}

// Whoever has no certificate, or another cluster's, gets no verdict.
func TestStrangersGetNowhere(t *testing.T) {
	d := dispatch(t, nil, onlyInProduction)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(shared.pki.PEM)
	ask := func(cluster string, certificates ...tls.Certificate) (int, string, error) {
		client := &http.Client{Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: certificates, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true,
		}}
		resp, err := client.Post("https://"+d.address+"/v1/clusters/"+cluster+"/validate?timeout=5s", "application/json",
			bytes.NewReader([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u"}}`)))
		if err != nil {
			return 0, "", err
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body), err
	}
	if status, body, err := ask("east"); err == nil {
		t.Errorf("without a certificate: status %d, %s", status, body)
	}
	east, err := tls.LoadX509KeyPair(shared.path("east.crt"), shared.path("east.key"))
	if err != nil {
		t.Fatal(err)
	}
	status, body, err := ask("west", east)
	if err != nil || status != http.StatusForbidden || strings.Contains(body, "AdmissionReview") {
		t.Errorf("east's certificate on west's path: status %d, %s, %v", status, body, err)
	}
}
