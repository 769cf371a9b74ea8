// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CustomResource is what a CustomResourceDefinition says of the kind that it defines.
type CustomResource struct {
	Origin
	Group, Kind, Plural string
	Namespaced          bool
	Versions            []CustomVersion
}

// CustomVersion is one version of the kind, and the form of its objects.
type CustomVersion struct {
	Name   string
	Schema json.RawMessage // openAPIV3Schema, not judged; nil: there is none
}

// GroupVersionKind names the kind in one version.
func (c *CustomResource) GroupVersionKind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: c.Group, Version: version, Kind: c.Kind}
}

// Has reports whether the kind has the version.
func (c *CustomResource) Has(version string) bool {
	return slices.ContainsFunc(c.Versions, func(v CustomVersion) bool { return v.Name == version })
}

// Schema is where the schema of the version at position i stands.
func (c *CustomResource) Schema(i int) *field.Path {
	return field.NewPath("spec", "versions").Index(i).Child("schema", "openAPIV3Schema")
}

// customResource reads what is of use of a CustomResourceDefinition, and leaves all else to
// the clusters.
func (d *decoder) customResource(at Origin, doc []byte) error {
	var crd struct {
		Spec struct {
			Group string `json:"group"`
			Scope string `json:"scope"`
			Names struct {
				Kind   string `json:"kind"`
				Plural string `json:"plural"`
			} `json:"names"`
			Versions []struct {
				Name   string `json:"name"`
				Schema struct {
					OpenAPI json.RawMessage `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(doc, &crd); err != nil {
		return err
	}
	s := &crd.Spec
	if s.Group == "" || s.Names.Kind == "" || s.Names.Plural == "" || len(s.Versions) == 0 || s.Scope != "Namespaced" && s.Scope != "Cluster" {
		return errors.New("spec.group, spec.names.kind, spec.names.plural, spec.versions and spec.scope, Namespaced or Cluster, are required")
	}
	made := CustomResource{Origin: at, Group: s.Group, Kind: s.Names.Kind, Plural: s.Names.Plural, Namespaced: s.Scope == "Namespaced"}
	for i, v := range s.Versions {
		if v.Name == "" || made.Has(v.Name) {
			return fmt.Errorf("spec.versions[%d].name is not there, or that of another version", i)
		}
		made.Versions = append(made.Versions, CustomVersion{v.Name, v.Schema.OpenAPI})
	}
	d.objects.CustomResources = append(d.objects.CustomResources, made)
	return nil
}

// rivals reports definitions of different names that define one kind, or one resource: a
// cluster serves one of them, and nothing says which.
func (o *Objects) rivals() (problems []Problem) {
	kinds, resources := map[schema.GroupKind]*CustomResource{}, map[schema.GroupResource]*CustomResource{}
	for i := range o.CustomResources {
		c := &o.CustomResources[i]
		kind, resource := schema.GroupKind{Group: c.Group, Kind: c.Kind}, schema.GroupResource{Group: c.Group, Resource: c.Plural}
		if other := kinds[kind]; other != nil && other.Object != c.Object {
			problems = append(problems, c.Problem(field.NewPath("spec", "names", "kind"), kind.String(), other.defines()))
		} else if other := resources[resource]; other != nil && other.Object != c.Object {
			problems = append(problems, c.Problem(field.NewPath("spec", "names", "plural"), resource.String(), other.defines()))
		}
		kinds[kind], resources[resource] = c, c
	}
	return problems
}

func (c *CustomResource) defines() string {
	return fmt.Sprintf("%s in %s defines it, too: remove one of them", c.Object, c.File)
}
