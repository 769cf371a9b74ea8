// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

const inCells = `
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: own, labels: {tier: own}}
spec: {cell: c7, authentication: {certificate: {commonNames: [own]}}}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: leaving}
spec: {cell: c8, previousCell: c7, authentication: {certificate: {commonNames: [leaving]}}}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: other, labels: {tier: other}}
spec: {cell: c8, kubeconfigFile: nowhere.kubeconfig, authentication: {certificate: {commonNames: [own]}}}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: unplaced}
spec: {authentication: {anonymous: true}}
---
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: others}
spec: {webhooks: ["*/*"], mode: Warn, clusterSelector: {matchLabels: {tier: other}}}
`

// A process of a cell serves that cell's Clusters, and those that move away from it. One
// of another cell is no error, whatever is wrong with it, and what is for such Clusters
// alone is no warning. A process of no cell serves all.
func TestCell(t *testing.T) {
	load := func(cell string) (names, problems, warnings []string) {
		h := newHome(t)
		h.put("cells.yaml", inCells)
		s, found, warned := registry.Validate(registry.Settings{Sources: manifest.Directories(h.dir), Cell: cell})
		if s != nil {
			names = slices.Sorted(maps.Keys(s.Clusters))
		}
		for _, p := range found {
			problems = append(problems, p.Reason)
		}
		for _, w := range warned {
			warnings = append(warnings, w.Reason)
		}
		return names, problems, warnings
	}
	names, problems, warnings := load("c7")
	if diff := cmp.Diff([]string{"leaving", "own"}, names); diff != "" || len(problems) > 0 {
		t.Errorf("%s, problems %q", diff, problems)
	}
	for _, w := range warnings {
		if strings.Contains(w, "selects no Cluster") || strings.Contains(w, "there is no") {
			t.Errorf("warning %q", w)
		}
	}
	if names, problems, warnings = load("c9"); len(names)+len(problems) > 0 || !slices.Contains(warnings, "there is no Cluster of cell c9: nobody may call") {
		t.Errorf("a cell without Clusters: %q, problems %q, warnings %q", names, problems, warnings)
	}
	if _, problems, _ = load(""); len(problems) == 0 {
		t.Error("a process of no cell leaves the Clusters of some out")
	}
}
