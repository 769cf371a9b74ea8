// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestPersistentVolumeClaimResize(t *testing.T) {
	const (
		denied = `403 persistentvolumeclaims "web" is forbidden: `
		static = denied + "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
	)
	claim := func(size, class, phase string) string {
		spec := "resources: {requests: {storage: " + size + "}}"
		if class != "" {
			spec += ", storageClassName: " + class
		}
		return "{metadata: {name: web}, spec: {" + spec + "}, status: {phase: " + phase + "}}"
	}
	beta := func(size, class string) string {
		return "{metadata: {annotations: {volume.beta.kubernetes.io/storage-class: " + class + "}}, spec: {storageClassName: silver, resources: {requests: {storage: " + size + "}}}, status: {phase: Bound}}"
	}
	cluster := storing(t, schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"},
		"{metadata: {name: gold}, allowVolumeExpansion: true}", "{metadata: {name: silver}, allowVolumeExpansion: false}", "{metadata: {name: bronze}}")
	p := configured(t, "PersistentVolumeClaimResize", "")
	for name, row := range map[string]struct{ old, object, want string }{
		"its class lets it grow":           {claim("1Gi", "gold", "Bound"), claim("2Gi", "gold", "Bound"), "allowed"},
		"it has no class":                  {claim("1Gi", "", "Bound"), claim("2Gi", "", "Bound"), static},
		"its class does not":               {claim("1Gi", "silver", "Bound"), claim("2Gi", "silver", "Bound"), static},
		"its class does not say":           {claim("1Gi", "bronze", "Bound"), claim("2Gi", "bronze", "Bound"), static},
		"its class is not there":           {claim("1Gi", "lead", "Bound"), claim("2Gi", "lead", "Bound"), static},
		"it gets a class":                  {claim("1Gi", "", "Bound"), claim("2Gi", "gold", "Bound"), static},
		"it gets another class":            {claim("1Gi", "silver", "Bound"), claim("2Gi", "gold", "Bound"), static},
		"it stays as large":                {claim("1Gi", "silver", "Pending"), claim("1024Mi", "silver", "Bound"), "allowed"},
		"it becomes smaller":               {claim("1Gi", "silver", "Pending"), claim("1023Mi", "silver", "Pending"), "allowed"},
		"it is pending":                    {claim("1Gi", "silver", "Pending"), claim("2Gi", "silver", "Pending"), denied + "Only bound persistent volume claims can be expanded"},
		"it was pending":                   {claim("1Gi", "gold", "Pending"), claim("2Gi", "gold", "Bound"), denied + "Only bound persistent volume claims can be expanded"},
		"its annotation's class lets it":   {beta("1Gi", "gold"), beta("2Gi", "gold"), "allowed"},
		"its annotation's class does not":  {beta("1Gi", "bronze"), beta("2Gi", "bronze"), static},
		"its annotation names no class":    {beta("1Gi", "''"), beta("2Gi", "''"), static},
		"an annotation stands for a field": {beta("1Gi", "gold"), claim("2Gi", "gold", "Bound"), "allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			p := asked{t, p.Instance}
			q := request{operation: "UPDATE", resource: "persistentvolumeclaims", object: row.object, old: row.old, caller: cluster}
			p.validate(q).says(t, row.want)
			q.subresource = "status"
			p.validate(q).says(t, "allowed")
			q.subresource, q.operation = "", "CREATE"
			p.validate(q).says(t, "allowed")
			q.operation, q.resource = "UPDATE", "example.com/persistentvolumeclaims"
			p.validate(q).says(t, "allowed")
		})
	}
}
