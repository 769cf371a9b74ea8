// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/plugin"
	"github.com/admission-dispatcher/dispatcher/policy"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// Options are what a process compiles with.
type Options struct {
	Addresses transport.AddressPolicy
	Bypass    []exempt.Rule // for every cluster, before the cluster's own
	FailOpen  []exempt.Rule
	// CertificateRequired: a caller without a client certificate does not get past the
	// TLS handshake.
	CertificateRequired bool
	MaxTimeout          time.Duration    // longest time an admission may take; chain.MaxTimeout
	Encoding            webhook.Encoding // for webhooks whose bindings say nothing
	// Client makes the calls of the webhooks. nil: nobody calls them.
	Client webhook.Client
	// Namespaces, if not nil, returns the source of the namespaces of a cluster
	// that has a kubeconfigFile, which nobody has opened yet if it is new: compiling
	// neither waits nor dials. Nobody asks it for other labels than these, which are
	// sorted. One that is a KubernetesVersioner says the cluster's version too.
	// Default: one that knows nothing, for those who contact nobody.
	Namespaces func(cluster string, access manifest.KubeAccess, labels []string) chain.NamespaceSource
	// Objects, if not nil, returns the source of the objects of a resource, likewise.
	Objects func(cluster string, access manifest.KubeAccess, resource schema.GroupVersionResource) chain.ObjectSource
	// Kinds, if not nil, returns the source of the types of a cluster's kinds, likewise. It
	// knows beforehand of which groups and versions somebody asks.
	Kinds func(cluster string, access manifest.KubeAccess, known []schema.GroupVersion) chain.KindSource
	// Authorizer, if not nil, returns who asks the authorizer of a cluster that has a
	// kubeconfigFile, for clusters in which somebody may: as for Namespaces.
	Authorizer func(cluster string, access manifest.KubeAccess) chain.AuthorizerSource
	// Plugins are those that are compiled in, and Workers what their calls run on. Without
	// Workers nobody may ask them.
	Plugins plugin.Set
	Workers *hook.Workers
}

// Compiled is everything that the configuration says, compiled: immutable, and one
// consistent whole.
type Compiled struct {
	Clusters map[string]*chain.Cluster
	Warnings []manifest.Problem // lint
	// Targets, Sources and Authorizers are the Resources that it uses, each once.
	Targets     []*transport.Target
	Sources     []chain.Resource
	Authorizers []chain.AuthorizerSource

	identities
}

// Compiler turns what was read into what is served. It starts nothing and dials
// nothing: the same input, Options and time give the same. It keeps compiled
// conditions and policies, and plugins with what they remember, from one time to the next.
type Compiler struct {
	options   Options
	cel       *celenv.Compiler
	policies  *policy.Compiler
	kinds     kinds
	instances map[string]*plugin.Instance // of the last configuration without a problem
}

// NewCompiler returns a Compiler.
func NewCompiler(o Options) *Compiler {
	if o.MaxTimeout <= 0 {
		o.MaxTimeout = chain.MaxTimeout
	}
	if o.Workers == nil {
		o.Workers = hook.NewWorkers(0)
	}
	cel := celenv.NewCompiler()
	return &Compiler{options: o, cel: cel, policies: policy.NewCompiler(cel)}
}

// Compile returns what in says, or every problem that stands in its way, problems
// among them, and what a person should know. current, which may be nil, is what is
// served. A Target that is living is kept where it is wanted again.
func (k *Compiler) Compile(in manifest.Input, current *Compiled, living []*transport.Target, problems ...manifest.Problem) (*Compiled, []manifest.Problem, []manifest.Problem) {
	in.Objects.Sort()
	d := &diagnostics{problems: slices.Concat(in.Problems, problems, in.Objects.Duplicates()), warnings: slices.Clone(in.Warnings)}
	files := &credentials{diagnostics: d, options: &k.options, in: &in, now: time.Now()}

	bindings := readBindings(in.Objects.Bindings, files)
	k.kinds.readCustom(in.Objects, d)
	params := compileParams(in.Objects, d)
	all := compileEntries(in.Objects, params, bindings, files, k)
	plugins := compilePlugins(slices.Concat(in.Objects.Plugins, listedPlugins(&in, k.options.Plugins, d)), all, d, k)
	clusters := compileClusters(in.Objects.Clusters, files)
	groups := groupsOf(clusters, clustersOf(all), slices.Concat(bindings, clusterSelectors(all)), plugins.list)
	targets := &targets{known: ByIdentity(living), found: map[transport.Identity]*transport.Target{}}
	compileChains(groups, all, plugins.list, &variants{diagnostics: d, options: &k.options, targets: targets})
	names := namesOfClusters(in.Objects.Clusters)
	if in.Cell != "" { // params may be for Clusters of others
		names = nil
	}
	params.lint(names)
	lintClusters(in.Objects, d)
	lint{d, &k.options, k.cel, in.Cell}.all(in.Objects, bindings, all, plugins.list, groups)

	manifest.SortProblems(d.problems)
	manifest.SortProblems(d.warnings)
	if len(d.problems) > 0 {
		return nil, d.problems, d.warnings
	}
	k.instances = plugins.instances
	compiled := &Compiled{
		Clusters:   make(map[string]*chain.Cluster, len(clusters.list)),
		Warnings:   d.warnings,
		Targets:    targets.used,
		Sources:    clusters.sources(current),
		identities: clusters.ids,
	}
	compiled.Authorizers = clusters.authorizers(current)
	for _, c := range clusters.list {
		compiled.Clusters[c.Name] = c
	}
	return compiled, nil, d.warnings
}

func namesOfClusters(list []manifest.Cluster) map[string]bool {
	names := make(map[string]bool, len(list))
	for i := range list {
		names[list[i].Name] = true
	}
	return names
}

// diagnostics are what is wrong, and what a person should know besides.
type diagnostics struct{ problems, warnings []manifest.Problem }

func (d *diagnostics) problem(ps ...manifest.Problem) { d.problems = append(d.problems, ps...) }

func (d *diagnostics) warn(ps ...manifest.Problem) { d.warnings = append(d.warnings, ps...) }
