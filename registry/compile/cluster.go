// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/api/v1alpha1"
	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/policy"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// clusters are the Clusters that are valid on their own, and the index of the
// credentials of all.
type clusters struct {
	*credentials
	ids      identities
	list     []*chain.Cluster
	accesses map[string]manifest.KubeAccess // by name, of those that have an API
	services map[string]services            // likewise
}

func compileClusters(list []manifest.Cluster, files *credentials) *clusters {
	c := &clusters{credentials: files, ids: newIdentities(), accesses: map[string]manifest.KubeAccess{}, services: map[string]services{}}
	for i := range list {
		before := len(c.problems)
		if cluster := c.compile(&list[i]); len(c.problems) == before {
			c.list = append(c.list, cluster)
		}
	}
	c.ids.index()
	return c
}

func (c *clusters) compile(m *manifest.Cluster) *chain.Cluster {
	c.problem(m.Problems(validateCluster(&m.Cluster))...)
	cluster := &chain.Cluster{
		Name:         m.Name,
		Labels:       m.Labels,
		Anonymous:    m.Spec.Authentication.Anonymous,
		Credentials:  credentialsOf(&m.Spec.Authentication),
		SourceRanges: sourceRanges(m.Spec.Authentication.SourceRanges),
		RequestBytes: m.Spec.Limits.RequestBytes,
		Bypass:       compileRules(c.options.Bypass, &m.Spec.Bypass),
		FailOpen:     compileRules(c.options.FailOpen, &m.Spec.FailOpen),
		Namespaces:   c.namespaces(m),
		Registration: cmp.Or(m.Spec.Registration.Policy, v1alpha1.RegistrationReport),
	}
	cluster.Declared, _ = chain.ParseKubernetesVersion(m.Spec.KubernetesVersion) // validated above; none is unknown
	if s := m.Spec.TimeoutSeconds; s != nil {
		cluster.Timeout = time.Duration(*s) * time.Second
	}
	if listed, ok := cluster.Namespaces.(*namespaces); ok {
		cluster.Stored = map[schema.GroupVersionResource]hook.Objects{policy.Namespaces(): storedNamespaces{listed}}
	}
	c.problem(m.Problems(validateServices(m.Spec.Services, c.options.Addresses, field.NewPath("spec", "services")))...)
	c.services[m.Name] = servicesOf(m.Spec.Services)
	c.identify(m)
	return cluster
}

// namespaces returns the cluster's source of namespaces; nil where there is none. For
// a cluster's API sources replaces it, once the labels are known that are needed of
// it.
func (c *clusters) namespaces(m *manifest.Cluster) match.Namespaces {
	if m.Spec.KubeconfigFile == "" {
		return compileNamespaces(m.Spec.Namespaces)
	}
	if a, ok := c.readAccess(m); ok {
		c.accesses[m.Name] = a
	}
	return nobodyAsked{}
}

// sources gives each cluster that has an API the sources of its namespaces, with the
// labels that its webhooks' selectors name, and of the objects that its Hooks ask for,
// and returns them. A webhook that waits for its Target keeps its previous version in
// the chain, so the labels that the current one names count too. What asks for objects
// has no Target to wait for.
func (c *clusters) sources(current *Compiled) (sources []chain.Resource) {
	for _, cluster := range c.list {
		a, ok := c.accesses[cluster.Name]
		if !ok {
			continue
		}
		keys, objects := map[string]bool{}, cluster.NeededObjects()
		cluster.SelectedLabels(keys)
		if current != nil {
			if before := current.Clusters[cluster.Name]; before != nil {
				before.SelectedLabels(keys)
			}
		}
		if c.options.Namespaces != nil {
			source := c.options.Namespaces(cluster.Name, a, slices.Sorted(maps.Keys(keys)))
			cluster.Namespaces = source
			sources = append(sources, source)
		}
		cluster.Stored = make(map[schema.GroupVersionResource]hook.Objects, len(objects))
		for _, resource := range objects {
			if c.options.Objects == nil {
				cluster.Stored[resource] = nobodyAsked{}
				continue
			}
			source := c.options.Objects(cluster.Name, a, resource)
			cluster.Stored[resource] = source
			sources = append(sources, source)
		}
		if known, needs := cluster.NeededTypes(); needs && c.options.Kinds != nil {
			source := c.options.Kinds(cluster.Name, a, known)
			cluster.Types = source
			sources = append(sources, source)
		} else if needs {
			cluster.Types = nobodyAsked{}
		}
	}
	return sources
}

// compileRules puts the process's rules and the cluster's own together.
func compileRules(inherited []exempt.Rule, list *v1alpha1.RequestRuleList) exempt.Rules {
	if list.Inherit != nil && !*list.Inherit {
		inherited = nil
	}
	return exempt.Compile(slices.Concat(inherited, list.Rules))
}

func validateCluster(c *v1alpha1.Cluster) field.ErrorList {
	errs := validation.ValidateObjectMeta(&c.ObjectMeta, false, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	spec := field.NewPath("spec")
	errs = append(errs, validateAuthentication(&c.Spec.Authentication, spec.Child("authentication"))...)
	errs = append(errs, validateTimeout(c.Spec.TimeoutSeconds, spec.Child("timeoutSeconds"))...)
	if v := c.Spec.KubernetesVersion; v != "" {
		if _, err := chain.ParseKubernetesVersion(v); err != nil {
			errs = append(errs, field.Invalid(spec.Child("kubernetesVersion"), v, err.Error()))
		}
	}
	errs = append(errs, validateNamespaces(c.Spec.Namespaces, spec.Child("namespaces"))...)
	if c.Spec.Namespaces != nil && c.Spec.KubeconfigFile != "" {
		errs = append(errs, field.Forbidden(spec.Child("kubeconfigFile"), "not together with spec.namespaces: the labels have one source"))
	}
	errs = append(errs, exempt.Validate(c.Spec.Bypass.Rules, spec.Child("bypass", "rules"), false)...)
	errs = append(errs, exempt.Validate(c.Spec.FailOpen.Rules, spec.Child("failOpen", "rules"), true)...)
	if n := c.Spec.Limits.RequestBytes; n < 0 {
		errs = append(errs, field.Invalid(spec.Child("limits", "requestBytes"), n, "must not be negative"))
	}
	switch at, policy := spec.Child("registration", "policy"), c.Spec.Registration.Policy; policy {
	case "", v1alpha1.RegistrationReport, v1alpha1.RegistrationOff:
	case v1alpha1.RegistrationApply:
		if c.Spec.KubeconfigFile == "" {
			errs = append(errs, field.Forbidden(at, "Apply needs a kubeconfig: the registration is applied with it"))
		}
	default:
		errs = append(errs, field.NotSupported(at, policy, []string{v1alpha1.RegistrationReport, v1alpha1.RegistrationApply, v1alpha1.RegistrationOff}))
	}
	errs = append(errs, validateMirror(&c.Spec, spec.Child("mirror"))...)
	return append(errs, validateCells(&c.Spec, spec)...)
}

// validateCells refuses cells that no process can be a replica of.
func validateCells(s *v1alpha1.ClusterSpec, spec *field.Path) (errs field.ErrorList) {
	for _, at := range [][2]string{{"cell", s.Cell}, {"previousCell", s.PreviousCell}} {
		if name, cell := at[0], at[1]; cell != "" && len(utilvalidation.IsDNS1123Label(cell)) > 0 {
			errs = append(errs, field.Invalid(spec.Child(name), cell, "must be a DNS label such as c7"))
		}
	}
	if s.PreviousCell != "" && (s.Cell == "" || s.Cell == s.PreviousCell) {
		errs = append(errs, field.Invalid(spec.Child("previousCell"), s.PreviousCell, "needs spec.cell, and another one"))
	}
	return errs
}
