// SPDX-License-Identifier: Apache-2.0

package binary

import (
	"bytes"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Group is the group and version of the dispatcher's own kinds.
const Group = "dispatcher.dev/v1alpha1"

// Cluster returns the manifest of a cluster that authenticates with a certificate
// of its own name, and whose namespaces have these labels.
func Cluster(name string, namespaces map[string]map[string]string) any {
	return map[string]any{
		"apiVersion": Group,
		"kind":       "Cluster",
		"metadata":   map[string]any{"name": name, "labels": map[string]string{"name": name}},
		"spec": map[string]any{
			"authentication": map[string]any{"certificate": map[string]any{"commonNames": []string{name}}},
			"timeoutSeconds": 30,
			// That of the plugins that the verdicts are compared with.
			"kubernetesVersion": "1.37",
			"namespaces":        map[string]any{"labels": namespaces},
		},
	}
}

// Binding returns the manifest of a WebhookBinding that keeps the webhooks of
// these globs to one cluster, with further fields of its spec.
func Binding(cluster string, globs []string, further map[string]any) any {
	return binding(cluster, globs, further, true)
}

// Setting is like Binding, but leaves alone where the webhooks serve.
func Setting(cluster string, globs []string, further map[string]any) any {
	return binding(cluster+"-setting", globs, further, false)
}

func binding(name string, globs []string, further map[string]any, only bool) any {
	// The API server asks a webhook that has failed again, and asks once.
	spec := map[string]any{"webhooks": globs, "breaker": map[string]any{"enabled": false}, "hedge": "Off"}
	if only {
		spec["onlySelectedClusters"] = true
		spec["clusterSelector"] = metav1.LabelSelector{MatchLabels: map[string]string{"name": name}}
	}
	for key, value := range further {
		spec[key] = value
	}
	return map[string]any{
		"apiVersion": Group,
		"kind":       "WebhookBinding",
		"metadata":   map[string]any{"name": name},
		"spec":       spec,
	}
}

// Manifest returns objects as one YAML file. Fields that only a server fills in
// are left out.
func Manifest(objects ...any) ([]byte, error) {
	var out bytes.Buffer
	for _, o := range objects {
		text, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		var tree map[string]any
		if err := yaml.Unmarshal(text, &tree); err != nil {
			return nil, err
		}
		if meta, ok := tree["metadata"].(map[string]any); ok {
			delete(meta, "creationTimestamp")
		}
		text, err = yaml.Marshal(tree)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "---\n%s", text)
	}
	return out.Bytes(), nil
}
