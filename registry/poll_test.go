// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// BenchmarkPoll is one look at the sources while nothing changes: clusters with a
// kubeconfig, an authority and a token file each.
func BenchmarkPoll(b *testing.B) {
	for _, clusters := range []int{200, 1000} {
		b.Run(fmt.Sprint(clusters), func(b *testing.B) {
			dir := b.TempDir()
			put := func(name, text string) {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					b.Fatal(err)
				}
			}
			authority, err := pki.NewAuthority("kubernetes")
			if err != nil {
				b.Fatal(err)
			}
			put("ca.crt", string(authority.PEM))
			for i := range clusters {
				put(fmt.Sprintf("%d.yaml", i), fmt.Sprintf(`apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: c%[1]d}
spec: {authentication: {certificate: {commonNames: [c%[1]d]}}, kubeconfigFile: %[1]d.kubeconfig}
`, i))
				put(fmt.Sprintf("%d.kubeconfig", i), fmt.Sprintf(`current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://api-%[1]d.example.com:6443", certificate-authority: %[1]d.crt}}]
users: [{name: a, user: {tokenFile: %[1]d.token}}]
`, i))
				put(fmt.Sprintf("%d.crt", i), string(authority.PEM))
				put(fmt.Sprintf("%d.token", i), fmt.Sprintf("token-of-%d", i))
			}
			r := registry.New(registry.Settings{Sources: manifest.Directories(dir)})
			if problems := r.Load(); len(problems) > 0 {
				b.Fatal(problems)
			}
			for b.Loop() {
				r.Load()
			}
		})
	}
}
