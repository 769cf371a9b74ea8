// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"path/filepath"
	"testing"
)

// What looks like a secret reaches no file system, and what is not named is not looked
// for (E14).
func TestE14SecretsAreNotRead(t *testing.T) {
	dir := t.TempDir()
	text := `apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: secrets}
spec: {authentication: {certificate: {caFile: eyJhbGciOi}}, kubeconfigFile: eyJhbGciOi}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: without}
spec: {authentication: {certificate: {commonNames: [a]}}}
---
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: secrets}
spec: {webhooks: ["*/*"], bearerTokenFile: eyJhbGciOi, endpoints: [{address: "192.0.2.1:443"}, {address: "192.0.2.1:443", caFile: "-----BEGIN"}]}
`
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := Reader{Sources: Directories(dir)}
	in := r.Read(t.Context())
	if len(in.Problems) > 0 || in.Objects.Len() != 3 {
		t.Fatalf("E14 %d objects, problems %v", in.Objects.Len(), in.Problems)
	}
	if len(in.files) > 0 || len(in.kubeconfigs) > 0 {
		t.Errorf("E14 read %v and %v", in.files, in.kubeconfigs)
	}
}
