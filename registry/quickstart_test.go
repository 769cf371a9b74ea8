// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"testing"

	"github.com/admission-dispatcher/dispatcher/registry"
)

func TestQuickstart(t *testing.T) {
	const dir = "../examples/quickstart"
	problems, warnings := registry.Validate(registry.Settings{}, []string{dir})
	if len(problems)+len(warnings) > 0 {
		t.Fatalf("problems %v, warnings %v", problems, warnings)
	}
	r := registry.New(registry.Settings{Directories: []string{dir}})
	if problems := r.Load(); len(problems) > 0 {
		t.Fatal(problems)
	}
	for name, modes := range map[string]map[string]registry.Mode{
		"dev":     {"owner.policy.example.com": registry.Warn},
		"staging": {"images.policy.example.com": registry.Shadow},
		"prod":    {},
	} {
		for _, w := range r.Snapshot().Clusters[name].Validating.Webhooks {
			if w.Mode != modes[w.Name] {
				t.Errorf("%s in %s: %v", w.Name, name, w.Mode)
			}
		}
	}
}
