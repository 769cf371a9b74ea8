// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/admission-dispatcher/dispatcher/conformance/binary"
	"github.com/admission-dispatcher/dispatcher/conformance/caller"
	"github.com/admission-dispatcher/dispatcher/conformance/random"
	"github.com/admission-dispatcher/dispatcher/conformance/world"
)

// story is f as a txtar file of dispatcher/testdata/story, without what is wanted:
// `go test ./dispatcher -run Stories -update` writes what there is.
func (f *failure) story() ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "Random case of seed %d.\n", f.Seed)
	for _, d := range f.played.Differences {
		fmt.Fprintf(&out, "%s\n", d)
	}
	section := func(name string, text []byte) { fmt.Fprintf(&out, "-- %s --\n%s\n", name, bytes.TrimSpace(text)) }
	phase := f.played.Through.Phase
	section("request", fmt.Appendf(nil, `{"cluster": "east", "phase": %q}`, phase))
	review, err := world.Review(&f.Admissions[0])
	if err != nil {
		return nil, err
	}
	section("review", review)
	manifests, err := f.manifests(phase)
	if err != nil {
		return nil, err
	}
	section("registry/cluster.yaml", manifests)
	for _, c := range f.of(phase) {
		for _, w := range c.Webhooks {
			section("webhook/"+c.Name+"."+w.Name, w.Script.Story(w.AdmissionReviewVersions[0]))
		}
	}
	return out.Bytes(), nil
}

func (f *failure) of(phase caller.Phase) []random.Configuration {
	if phase == caller.Mutating {
		return f.Mutating
	}
	return f.Validating
}

// manifests are the cluster, with its namespaces, and the configurations.
func (f *failure) manifests(phase caller.Phase) ([]byte, error) {
	kind := map[caller.Phase]string{caller.Mutating: "Mutating", caller.Validating: "Validating"}[phase]
	all := []any{map[string]any{
		"apiVersion": binary.Group,
		"kind":       "Cluster",
		"metadata":   map[string]any{"name": "east"},
		"spec": map[string]any{
			"authentication": map[string]any{"anonymous": true},
			"namespaces":     map[string]any{"labels": f.Namespaces},
		},
	}}
	if f.Compatibility != "Strict" {
		all = append(all, binary.Setting("east", []string{"*/*"}, map[string]any{"compatibility": f.Compatibility}))
	}
	for _, c := range f.of(phase) {
		tree, err := untyped(c.Webhooks)
		if err != nil {
			return nil, err
		}
		for i, w := range tree {
			delete(w, "Script")
			w["clientConfig"] = map[string]any{"url": "https://webhooks.example.com/" + c.Name + "." + c.Webhooks[i].Name}
			if phase == caller.Validating {
				delete(w, "reinvocationPolicy")
			}
		}
		all = append(all, map[string]any{
			"apiVersion": c.StoredVersion(),
			"kind":       kind + "WebhookConfiguration",
			"metadata":   map[string]any{"name": c.Name},
			"webhooks":   tree,
		})
	}
	return binary.Manifest(all...)
}

func untyped(webhooks []random.Webhook) ([]map[string]any, error) {
	text, err := json.Marshal(webhooks)
	if err != nil {
		return nil, err
	}
	var tree []map[string]any
	return tree, yaml.Unmarshal(text, &tree)
}
