// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
	policyschema "github.com/admission-dispatcher/dispatcher/policy/schema"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// namespaceName is the label that every namespace has.
const namespaceName = corev1.LabelMetadataName

// namespaces is a cluster's list of namespaces with their labels. It is
// read-only, and so are the maps that it hands out.
type namespaces struct {
	listed   map[string]map[string]string
	defaults map[string]string // nil: a namespace that is not listed is unknown
}

// NamespaceLabels implements match.Namespaces.
func (n *namespaces) NamespaceLabels(name string) (labels map[string]string, err error) {
	if labels, ok := n.listed[name]; ok {
		return labels, nil
	}
	if n.defaults == nil {
		return nil, match.ErrNoNamespace
	}
	return namedLabels(name, n.defaults), nil
}

// storedNamespaces is the list as hook.Objects, for expressions that look at no more of a namespace
// than its labels.
type storedNamespaces struct{ *namespaces }

// Get implements hook.Objects.
func (n storedNamespaces) Get(_, name string, _ time.Time) (*hook.Stored, error) {
	labels, err := n.NamespaceLabels(name)
	switch {
	case errors.Is(err, match.ErrNoNamespace):
		return nil, nil //nolint:nilnil // there is none
	case err != nil:
		return nil, err
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": name, "labels": labels}})
	return &hook.Stored{Name: name, Labels: labels, JSON: text}, err
}

// List implements hook.Objects: what is not listed may be there all the same.
func (n storedNamespaces) List(string, time.Time) ([]*hook.Stored, error) {
	return nil, errors.New("spec.namespaces of the Cluster is not all its namespaces")
}

func namedLabels(name string, labels map[string]string) map[string]string {
	named := make(map[string]string, len(labels)+1)
	maps.Copy(named, labels)
	named[namespaceName] = name
	return named
}

// compileNamespaces returns the list as matching reads it; nil where there is
// none.
func compileNamespaces(list *v1alpha1.NamespaceList) match.Namespaces {
	if list == nil {
		return nil
	}
	n := &namespaces{listed: make(map[string]map[string]string, len(list.Labels)), defaults: list.DefaultLabels}
	for name, labels := range list.Labels {
		n.listed[name] = namedLabels(name, labels)
	}
	return n
}

func validateNamespaces(list *v1alpha1.NamespaceList, at *field.Path) field.ErrorList {
	if list == nil {
		return nil
	}
	errs := validateNamespaceLabels(list.DefaultLabels, "", at.Child("defaultLabels"))
	for _, name := range slices.Sorted(maps.Keys(list.Labels)) {
		here := at.Child("labels").Key(name)
		for _, reason := range utilvalidation.IsDNS1123Label(name) {
			errs = append(errs, field.Invalid(here, name, reason))
		}
		errs = append(errs, validateNamespaceLabels(list.Labels[name], name, here)...)
	}
	return errs
}

func validateNamespaceLabels(labels map[string]string, name string, at *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(labels, at)
	if said, ok := labels[namespaceName]; ok && said != name {
		errs = append(errs, field.Invalid(at.Key(namespaceName), said, "is always the namespace's own name"))
	}
	return errs
}

// unsupplied refuses what needs labels of namespaces that nobody supplies for a cluster
// that it serves: of is its object, and at the field that needs them (E9).
func unsupplied(keys []string, of manifest.Origin, at *field.Path, g *group) []manifest.Problem {
	if len(keys) == 0 {
		return nil
	}
	var without []string
	for _, cluster := range g.clusters {
		if cluster.Namespaces == nil {
			without = append(without, "Cluster/"+cluster.Name)
		}
	}
	if len(without) == 0 {
		return nil
	}
	return []manifest.Problem{of.Problem(at, strings.Join(keys, ", "),
		fmt.Sprintf("needs labels that nobody supplies: neither spec.namespaces nor spec.kubeconfigFile is set in %s", enumerate(without)))}
}

// unstored refuses what needs stored objects of a cluster that has no API to ask: of is
// its object, and at the field that needs them.
func unstored(needs []schema.GroupVersionResource, of manifest.Origin, at *field.Path, g *group) []manifest.Problem {
	without := g.withoutAPI()
	if len(needs) == 0 || len(without) == 0 {
		return nil
	}
	var names []string
	for _, resource := range slices.SortedFunc(slices.Values(needs), chain.CompareResources) {
		names = append(names, resource.GroupResource().String())
	}
	return []manifest.Problem{of.Problem(at, strings.Join(slices.Compact(names), ", "),
		fmt.Sprintf("needs objects of the cluster that nobody can read: spec.kubeconfigFile is not set in %s", enumerate(without)))}
}

// withoutAPI returns the clusters whose API nobody can ask, as problems name them.
func (g *group) withoutAPI() (names []string) {
	for _, cluster := range g.clusters {
		if _, asked := cluster.Namespaces.(nobodyAsked); !asked { // else it has an API
			names = append(names, "Cluster/"+cluster.Name)
		}
	}
	return names
}

// enumerated is how many names a Problem spells out.
const enumerated = 5

func enumerate(names []string) string {
	if len(names) <= enumerated {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:enumerated], ", "), len(names)-enumerated)
}

// nobodyAsked is the source of namespaces and objects where no cluster is contacted.
type nobodyAsked struct{}

var errNobodyAsked = hook.ErrNotAsked

// NamespaceLabels implements match.Namespaces.
func (nobodyAsked) NamespaceLabels(string) (labels map[string]string, err error) {
	return nil, errNobodyAsked
}

// Types implements hook.Kinds.
func (nobodyAsked) Types(schema.GroupVersion, time.Time) (*policyschema.Types, error) {
	return nil, errNobodyAsked
}

// Get implements hook.Objects.
func (nobodyAsked) Get(string, string, time.Time) (*hook.Stored, error) { return nil, errNobodyAsked }

// List implements hook.Objects.
func (nobodyAsked) List(string, time.Time) ([]*hook.Stored, error) { return nil, errNobodyAsked }
