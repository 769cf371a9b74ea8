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

const baseDir = "../kustomize/base"

// TestKustomize: deploy/kustomize/base is what the chart renders with its defaults, one
// file per object, in its namespace. e2e shows what kubectl makes of it.
func TestKustomize(t *testing.T) {
	made := mustRender(t, nil)
	delete(made, "NOTES.txt")
	names := slices.Sorted(maps.Keys(made))
	for _, name := range names {
		compare(t, filepath.Join(baseDir, name), strings.TrimSpace(made[name])+"\n")
	}
	var list strings.Builder
	fmt.Fprint(&list, kustomization)
	for _, name := range names {
		fmt.Fprintf(&list, "  - %s\n", name)
	}
	compare(t, filepath.Join(baseDir, "kustomization.yaml"), list.String())
	entries, err := os.ReadDir(baseDir)
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
# The chart with its defaults: "make deploy-test UPDATE=1" writes this directory.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - namespace.yaml
`
