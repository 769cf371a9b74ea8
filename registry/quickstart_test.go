// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// demoBinding is what a demo adds to make the Services of the examples reachable.
const demoBinding = `
apiVersion: dispatcher.dev/v1alpha1
kind: WebhookBinding
metadata: {name: demo}
spec:
  webhooks: ["*/*"]
  endpoints: [{address: "192.0.2.1:8443", serverName: demo.example.com}]
`

func TestQuickstart(t *testing.T) {
	const dir = "../examples/quickstart"
	_, problems, warnings := registry.Validate(registry.Settings{Sources: manifest.Directories(dir)})
	// Their Services have no caBundle: a demo binds them to endpoints, with one.
	warnings = slices.DeleteFunc(warnings, func(w manifest.Problem) bool { return w.Rule == "W10" })
	if len(problems)+len(warnings) > 0 {
		t.Fatalf("problems %v, warnings %v", problems, warnings)
	}
	h := newHome(t)
	h.must(os.Remove(filepath.Join(h.dir, "cluster.yaml")))
	h.put("webhook.yaml", demoBinding)
	r := registry.New(registry.Settings{Sources: manifest.Directories(dir, h.dir)})
	h.good(r)
	for name, modes := range map[string]map[string]chain.Mode{
		"dev":     {"owner.policy.example.com": chain.Warn},
		"staging": {"images.policy.example.com": chain.Shadow},
		"prod":    {},
	} {
		for _, w := range r.Snapshot().Clusters[name].Validating.Webhooks {
			if w.Mode != modes[w.Name] {
				t.Errorf("%s in %s: %v", w.Name, name, w.Mode)
			}
		}
	}
}
