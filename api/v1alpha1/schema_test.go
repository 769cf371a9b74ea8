// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the schemas")

// TestSchemas makes the JSON Schemas for editors of the CustomResourceDefinitions, and
// compares them with those that are committed.
func TestSchemas(t *testing.T) {
	files, err := filepath.Glob("crds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		var crd struct {
			Spec struct {
				Names    struct{ Kind string }
				Versions []struct {
					Schema struct {
						OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
					}
				}
			}
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(file, err)
		}
		kind, schema := crd.Spec.Names.Kind, crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		closed(schema)
		schema["$schema"], schema["title"] = "http://json-schema.org/draft-07/schema#", kind
		properties := schema["properties"].(map[string]any)
		properties["apiVersion"] = map[string]any{"const": "dispatcher.dev/v1alpha1"}
		properties["kind"] = map[string]any{"const": kind}
		properties["metadata"] = map[string]any{"type": "object", "required": []string{"name"}}
		schema["required"] = []string{"apiVersion", "kind", "metadata"}
		if properties["spec"] != nil {
			schema["required"] = []string{"apiVersion", "kind", "metadata", "spec"}
		}
		want, err := json.MarshalIndent(schema, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, '\n')
		name := filepath.Join("schemas", strings.ToLower(kind)+".json")
		if *update {
			if err := os.MkdirAll("schemas", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the types give: run make generate (%v)", name, err)
		}
	}
}

// closed drops what only an API server reads, and refuses unknown fields as it does.
func closed(schema map[string]any) {
	_, open := schema["x-kubernetes-preserve-unknown-fields"]
	for key, value := range schema {
		if strings.HasPrefix(key, "x-kubernetes-") {
			delete(schema, key)
		}
		if list, ok := value.(map[string]any); ok && key == "properties" {
			for _, property := range list {
				closed(property.(map[string]any))
			}
			if !open {
				schema["additionalProperties"] = false
			}
		} else if ok && (key == "items" || key == "additionalProperties") {
			closed(list)
		}
	}
}
