// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestDefinitions: an object that the CustomResourceDefinitions of an earlier release
// accept has the same fields today: none has gone, has another type or fewer values, or is
// required that was not. What the rules in CEL ask for is e2e's.
func TestDefinitions(t *testing.T) {
	earlier, err := filepath.Glob("testdata/releases/*/crds/*.yaml")
	if err != nil || len(earlier) == 0 {
		t.Fatalf("no definitions of releases: %v", err)
	}
	for _, file := range earlier {
		was, is := definition(t, file), definition(t, filepath.Join(definitionsDir, filepath.Base(file)))
		for _, v := range was.Spec.Versions {
			i := slices.IndexFunc(is.Spec.Versions, func(now apiextensions.CustomResourceDefinitionVersion) bool { return now.Name == v.Name && now.Served })
			if i < 0 {
				t.Errorf("%s: version %s is not served", file, v.Name)
				continue
			}
			for _, lost := range narrowed("", v.Schema.OpenAPIV3Schema, is.Spec.Versions[i].Schema.OpenAPIV3Schema) {
				t.Errorf("%s: %s", file, lost)
			}
		}
	}
}

// TestDefinitionsAreJudged: what would refuse an earlier object is noticed.
func TestDefinitionsAreJudged(t *testing.T) {
	file := filepath.Join(definitionsDir, "dispatcher.dev_webhookbindings.yaml")
	for name, change := range map[string]func(spec *apiextensions.JSONSchemaProps){
		"spec.hedge: is gone":    func(spec *apiextensions.JSONSchemaProps) { delete(spec.Properties, "hedge") },
		"spec: mode is required": func(spec *apiextensions.JSONSchemaProps) { spec.Required = append(spec.Required, "mode") },
		"spec.webhooks: is no array any more": func(spec *apiextensions.JSONSchemaProps) {
			spec.Properties["webhooks"] = apiextensions.JSONSchemaProps{Type: "string"}
		},
	} {
		was, is := definition(t, file).Spec.Versions[0].Schema.OpenAPIV3Schema, definition(t, file).Spec.Versions[0].Schema.OpenAPIV3Schema
		spec := is.Properties["spec"]
		change(&spec)
		is.Properties["spec"] = spec
		if got := narrowed("", was, is); !slices.Contains(got, name) {
			t.Errorf("%q is not among %q", name, got)
		}
		if got := narrowed("", was, was); len(got) > 0 {
			t.Errorf("the same is narrower: %q", got)
		}
	}
}

func definition(t *testing.T, file string) *apiextensions.CustomResourceDefinition {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return object[*apiextensions.CustomResourceDefinition](t, map[string]string{file: string(text)}, file)
}

// narrowed returns where a schema takes less than it took.
func narrowed(at string, was, is *apiextensions.JSONSchemaProps) (all []string) {
	say := func(what string) { all = append(all, at+": "+what) }
	if was.Type != "" && was.Type != is.Type {
		say("is no " + was.Type + " any more")
		return all
	}
	for _, name := range is.Required {
		if !slices.Contains(was.Required, name) {
			say(name + " is required")
		}
	}
	for _, value := range was.Enum {
		if len(is.Enum) > 0 && !slices.ContainsFunc(is.Enum, func(now apiextensions.JSON) bool { return string(now.Raw) == string(value.Raw) }) {
			say(string(value.Raw) + " is no value any more")
		}
	}
	for name := range was.Properties {
		below := name
		if at != "" {
			below = at + "." + name
		}
		inner := was.Properties[name]
		now, ok := is.Properties[name]
		if !ok {
			all = append(all, below+": is gone")
			continue
		}
		all = append(all, narrowed(below, &inner, &now)...)
	}
	if was.Items != nil && was.Items.Schema != nil && is.Items != nil && is.Items.Schema != nil {
		all = append(all, narrowed(at+"[]", was.Items.Schema, is.Items.Schema)...)
	}
	return all
}
