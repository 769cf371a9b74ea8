// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The registration as a file of the control plane: it holds from the start, and
// nobody can remove it through the API.
func TestStaticManifests(t *testing.T) {
	d, err := shared.registry(quick, readiness)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.serve(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.process.End)
	shared.front.point(d.address)
	t.Cleanup(func() { shared.front.point("") })
	c := startStatic(t, d)
	c.awaitCalls(t)
	shared.webhooks.handle("/quick", deny(http.StatusForbidden, "by a manifest on disk"))
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}
	_, err = c.client.CoreV1().ConfigMaps("default").Create(t.Context(), m, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), `admission webhook "validate.admission-dispatcher.dispatcher.dev" denied the request`) ||
		!strings.Contains(err.Error(), "by a manifest on disk") {
		t.Errorf("the client sees %v", err)
	}
	listed, err := c.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(listed.Items) != 0 {
		t.Errorf("the API has %v, %v", listed, err)
	}
}

// startStatic starts a cluster that has its registration on disk, as west.
func startStatic(t *testing.T, d *dispatcher) *cluster {
	t.Helper()
	manifests := filepath.Join(shared.dir, "manifests")
	for _, phase := range []string{"mutate", "validate"} {
		registration, err := d.registration("west", "--static", "--phase", phase)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(manifests, phase), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(manifests, phase, "registration.yaml"), []byte(registration), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := shared.startCluster(clusterOptions{
		name:      "static",
		caller:    "west",
		manifests: manifests,
		flags:     []string{"--feature-gates", "ManifestBasedAdmissionControlConfig=true"},
	})
	t.Cleanup(c.close)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
