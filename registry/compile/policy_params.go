// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/policy"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// params are the params of policies that stand in the sources.
type params struct {
	*diagnostics
	objects *manifest.Objects
	listed  map[metav1.TypeMeta]*listedParams
}

// listedParams are the objects of one kind that stand in the sources.
type listedParams struct {
	registry *policy.RegistryParams
	list     []*manifest.Param
	checked  bool // against the scope of their kind
	used     bool
}

func compileParams(objects *manifest.Objects, d *diagnostics) *params {
	c := &params{d, objects, map[metav1.TypeMeta]*listedParams{}}
	for i := range objects.Params {
		p := &objects.Params[i]
		if p.Name == "" {
			c.problem(p.Problem(field.NewPath("metadata", "name"), "", "Required value"))
		}
		of := c.listed[p.TypeMeta]
		if of == nil {
			of = &listedParams{}
			c.listed[p.TypeMeta] = of
		}
		of.list = append(of.list, p)
	}
	for _, of := range c.listed {
		var every []*hook.Stored
		own := map[string][]*hook.Stored{}
		for _, p := range of.list {
			s := &hook.Stored{Namespace: p.Namespace, Name: p.Name, Labels: p.Labels, JSON: p.JSON}
			if p.Cluster == "" {
				every = append(every, s)
			} else {
				own[p.Cluster] = append(own[p.Cluster], s)
			}
		}
		of.registry = policy.NewRegistryParams(every, own)
	}
	return c
}

// paramBinding is what a binding of a policy of either kind says of params.
type paramBinding struct {
	policy, binding manifest.Origin
	kind            *admissionregistrationv1.ParamKind
	ref             *admissionregistrationv1.ParamRef
	annotations     map[string]string // of the binding
}

// of returns what finds the params of a binding; nil: it is evaluated with null, or there
// is a problem, which is reported.
func (c *params) of(b paramBinding) *policy.Params {
	at := field.NewPath("spec", "paramRef")
	where, said := b.annotations[manifest.ParamsAnnotation]
	switch {
	case said && where != manifest.ParamsInRegistry && where != manifest.ParamsInCluster:
		c.problem(b.binding.Problem(paramsPath(), where, fmt.Sprintf("must be %s or %s", manifest.ParamsInRegistry, manifest.ParamsInCluster)))
		return nil
	case b.ref == nil:
		return nil
	case b.kind == nil:
		c.warn(b.binding.Problem(at, "", "the policy has no paramKind: nothing is read of paramRef"))
		return nil
	}
	resource, err := resourceOf(b.kind, c.objects.CustomResources)
	if err != nil {
		c.problem(b.policy.Problem(field.NewPath("spec", "paramKind"), b.kind.Kind, err.Error()))
		return nil
	}
	var registry *policy.RegistryParams
	if where != manifest.ParamsInCluster {
		if registry = c.registryOf(resource); registry == nil && !said {
			c.problem(b.binding.Problem(at, "", fmt.Sprintf("no %s of %s stands in a source: put it there, or have those of each cluster count by the annotation %s: %s",
				b.kind.Kind, b.kind.APIVersion, manifest.ParamsAnnotation, manifest.ParamsInCluster)))
			return nil
		}
		if registry == nil { // none is meant, for now
			registry = policy.NewRegistryParams(nil, nil)
		}
	}
	p, err := policy.NewParams(resource, b.ref, registry)
	if err != nil {
		c.problem(b.binding.Problem(at, "", err.Error()))
		return nil
	}
	return p
}

// registryOf returns the objects of a kind that stand in the sources, whose namespaces it
// checks; nil: there are none.
func (c *params) registryOf(kind policy.ParamResource) *policy.RegistryParams {
	of := c.listed[metav1.TypeMeta{APIVersion: kind.Kind.APIVersion, Kind: kind.Kind.Kind}]
	if of == nil {
		return nil
	}
	of.used = true
	if of.checked {
		return of.registry
	}
	of.checked = true
	at := field.NewPath("metadata", "namespace")
	for _, p := range of.list {
		switch {
		case kind.Namespaced && p.Namespace == "":
			c.problem(p.Problem(at, "", fmt.Sprintf("Required value: a %s is in a namespace", p.Kind)))
		case !kind.Namespaced && p.Namespace != "":
			c.problem(p.Problem(at, p.Namespace, fmt.Sprintf("a %s is in no namespace", p.Kind)))
		}
	}
	return of.registry
}

// lint warns about params that nobody is evaluated with. The names of Clusters are known.
func (c *params) lint(clusters map[string]bool) {
	at := field.NewPath("metadata", "annotations").Key(manifest.ClusterAnnotation)
	for i := range c.objects.Params {
		p := &c.objects.Params[i]
		if !c.listed[p.TypeMeta].used {
			c.warn(p.Problem(nil, "", "no binding selects params of its kind in the registry: it does nothing"))
		}
		if p.Cluster != "" && len(clusters) > 0 && !clusters[p.Cluster] {
			c.warn(p.Problem(at, p.Cluster, "there is no such Cluster: it does nothing"))
		}
	}
}

func paramsPath() *field.Path {
	return field.NewPath("metadata", "annotations").Key(manifest.ParamsAnnotation)
}
