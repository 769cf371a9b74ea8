// SPDX-License-Identifier: Apache-2.0

package podsecurity_test

import (
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/plugin/podsecurity"
)

// A template of pods is that of a workload, and of nothing else.
func TestTemplateOf(t *testing.T) {
	of := func(group, resource, subresource string) string {
		return strings.NewReplacer(`"resource":{"group":"","version":"v1","resource":"pods"}`, `"resource":{"group":"`+group+`","version":"v1","resource":"`+resource+`"},"subResource":"`+subresource+`"`,
			"SPEC", `{"template":{"spec":{"hostNetwork":true}}}`).Replace(pod)
	}
	for text, want := range map[string]bool{
		of("apps", "deployments", ""): true, of("apps", "deployments", "scale"): false, of("", "pods", ""): false, of("example.com", "deployments", ""): false,
	} {
		err := plugin.WithReview([]byte(text), nil, func(a *plugin.Attributes) {
			template, err := podsecurity.TemplateOf(a, a.Object())
			if (template != nil) != want || template != nil && !template.Spec.HostNetwork || err != nil {
				t.Errorf("%s has %v, %v", text, template, err)
			}
		})
		if err != nil {
			t.Error(text, err)
		}
	}
}
