// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestKustomize: the bases in deploy/kustomize are what the chart renders, with its
// defaults and with a registry in the API, one file per object, in its namespace. e2e shows
// what kubectl makes of them.
func TestKustomize(t *testing.T) {
	for _, base := range []struct {
		dir, about string
		values     map[string]any
	}{
		{"base", "The chart with its defaults", nil},
		{"api", "The chart with its defaults, and the registry in the API of the cluster that it runs in", map[string]any{"registry": map[string]any{"source": "API"}}},
	} {
		t.Run(base.dir, func(t *testing.T) {
			made := mustRender(t, base.values)
			delete(made, "NOTES.txt")
			checkBase(t, filepath.Join("../kustomize", base.dir), base.about, made)
		})
	}
}

func checkBase(t *testing.T, dir, about string, made map[string]string) {
	t.Helper()
	names := slices.Sorted(maps.Keys(made))
	for _, name := range names {
		compare(t, filepath.Join(dir, name), strings.TrimSpace(made[name])+"\n")
	}
	var list strings.Builder
	fmt.Fprintf(&list, kustomization, about)
	for _, name := range names {
		fmt.Fprintf(&list, "  - %s\n", name)
	}
	compare(t, filepath.Join(dir, "kustomization.yaml"), list.String())
	compare(t, filepath.Join(dir, "namespace.yaml"), namespace)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, rendered := made[e.Name()]; !rendered && e.Name() != "kustomization.yaml" && e.Name() != "namespace.yaml" {
			t.Errorf("%s is not of the chart", e.Name())
		}
	}
}

const kustomization = `# SPDX-License-Identifier: Apache-2.0
#
# %s: "make deploy-test UPDATE=1" writes this directory.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - namespace.yaml
`

const namespace = `# SPDX-License-Identifier: Apache-2.0
apiVersion: v1
kind: Namespace
metadata:
  name: admission-dispatcher
  labels:
    # The pods need nothing beyond it.
    pod-security.kubernetes.io/enforce: restricted
`
