// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/registry"
)

// TestAccess is what the source of a cluster's namespaces is given, and given
// again when a file changes that only the kubeconfig names.
func TestAccess(t *testing.T) {
	dir := t.TempDir()
	put := func(name, content string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("registry/cluster.yaml", `apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec: {authentication: {certificate: {commonNames: [east]}}, kubeconfigFile: ../access/kubeconfig}
`)
	put("access/kubeconfig", `current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://api.example.com:6443/k8s", tls-server-name: kubernetes}}]
users: [{name: a, user: {tokenFile: token}}]
`)
	put("access/token", "first\n")

	var given []registry.KubeAccess
	r := registry.New(registry.Settings{
		Directories: []string{filepath.Join(dir, "registry")},
		Namespaces: func(_ string, access registry.KubeAccess) match.Namespaces {
			given = append(given, access)
			return nil
		},
	})
	for _, token := range []string{"first", "first", "second"} {
		put("access/token", token+"\n")
		if problems := r.Load(); len(problems) > 0 {
			t.Fatal(problems)
		}
	}
	want := []registry.KubeAccess{
		{Server: "https://api.example.com:6443/k8s", ServerName: "kubernetes", Token: "first"},
		{Server: "https://api.example.com:6443/k8s", ServerName: "kubernetes", Token: "second"},
	}
	if diff := cmp.Diff(want, given); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if printed := fmt.Sprintf("%v %+v %#v", given, given, given); strings.Contains(printed, "first") {
		t.Errorf("what is printed holds the token: %s", printed)
	}
}
