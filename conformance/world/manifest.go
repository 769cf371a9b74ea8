// SPDX-License-Identifier: Apache-2.0

package world

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/conformance/binary"
	"github.com/admission-dispatcher/dispatcher/conformance/random"
	"github.com/admission-dispatcher/dispatcher/conformance/script"
)

// manifest is what the registry gets of a Case: a cluster, its configurations, and
// a binding that keeps them to it.
func (w *World) manifest(at string, c *random.Case, scripts map[string]script.Script) ([]byte, error) {
	cluster := at + "cluster"
	all := []any{
		binary.Cluster(cluster, c.Namespaces),
		binary.Binding(cluster, []string{at + "*/*"}, map[string]any{"compatibility": c.Compatibility}),
	}
	for _, configuration := range c.Mutating {
		m := w.mutating(at, configuration, scripts)
		m.TypeMeta = metav1.TypeMeta{APIVersion: configuration.StoredVersion(), Kind: "MutatingWebhookConfiguration"}
		all = append(all, m)
	}
	for _, configuration := range c.Validating {
		v := w.validating(at, configuration, scripts)
		v.TypeMeta = metav1.TypeMeta{APIVersion: configuration.StoredVersion(), Kind: "ValidatingWebhookConfiguration"}
		all = append(all, v)
	}
	return binary.Manifest(all...)
}
