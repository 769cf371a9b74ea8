// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
	"github.com/admission-dispatcher/dispatcher/transport"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// Options are what a process compiles with.
type Options struct {
	Addresses  transport.AddressPolicy
	Bypass     []exempt.Rule // for every cluster, before the cluster's own
	FailOpen   []exempt.Rule
	MaxTimeout time.Duration    // longest time an admission may take; 30 s
	Encoding   webhook.Encoding // for webhooks whose bindings say nothing
	// Client makes the calls of the webhooks. nil: nobody calls them.
	Client webhook.Client
	// Namespaces, if not nil, returns the source of the namespaces of a cluster
	// that has a kubeconfigFile, which nobody has opened yet if it is new: compiling
	// neither waits nor dials. Nobody asks it for other labels than these, which are
	// sorted. One that is a KubernetesVersioner says the cluster's version too.
	// Default: one that knows nothing, for those who contact nobody.
	Namespaces func(cluster string, access manifest.KubeAccess, labels []string) chain.NamespaceSource
}

// DefaultMaxTimeout is the longest timeout that kube-apiserver gives a webhook.
const DefaultMaxTimeout = 30 * time.Second

// Compiled is everything that the configuration says, compiled: immutable, and one
// consistent whole.
type Compiled struct {
	Clusters map[string]*chain.Cluster
	Warnings []manifest.Problem // lint
	// Targets and Sources are the Resources that it uses, each once.
	Targets []*transport.Target
	Sources []chain.NamespaceSource

	identities identities
}

// Compiler turns what was read into what is served. It starts nothing and dials
// nothing: the same input, Options and time give the same. It keeps compiled
// conditions from one time to the next.
type Compiler struct {
	options Options
	cel     *celenv.Compiler
}

// NewCompiler returns a Compiler.
func NewCompiler(o Options) *Compiler {
	if o.MaxTimeout <= 0 {
		o.MaxTimeout = DefaultMaxTimeout
	}
	return &Compiler{options: o, cel: celenv.NewCompiler()}
}

// Compile returns what in says, or every problem that stands in its way, problems
// among them, and what a person should know. current, which may be nil, is what is
// served. A Target that is living is kept where it is wanted again.
func (k *Compiler) Compile(in manifest.Input, current *Compiled, living []*transport.Target, problems ...manifest.Problem) (*Compiled, []manifest.Problem, []manifest.Problem) {
	c := &compiler{
		Options:   k.options,
		cel:       k.cel,
		now:       time.Now(),
		objects:   in.Objects,
		pathIDs:   map[pathKey]*entry{},
		in:        &in,
		current:   current,
		accesses:  map[string]manifest.KubeAccess{},
		endpoints: map[endpointsKey][]transport.EndpointSpec{},
		targets:   targetTable{known: ByIdentity(living), found: map[transport.Identity]*transport.Target{}},
		problems:  slices.Concat(in.Problems, problems),
	}
	return c.compile(), c.problems, c.warnings
}

// ByIdentity returns the Targets by what they are.
func ByIdentity(targets []*transport.Target) map[transport.Identity]*transport.Target {
	table := make(map[transport.Identity]*transport.Target, len(targets))
	for _, t := range targets {
		table[t.Identity()] = t
	}
	return table
}

// compiler is one use of a Compiler.
type compiler struct {
	Options
	cel     *celenv.Compiler
	now     time.Time
	objects *manifest.Objects
	in      *manifest.Input
	current *Compiled // that is served; nil: none
	targets targetTable

	bindings  []*binding
	endpoints map[endpointsKey][]transport.EndpointSpec
	entries   [2][]*entry // by Phase, in configuration and list order
	clusters  []*chain.Cluster
	accesses  map[string]manifest.KubeAccess // by cluster
	chains    chainTable
	pathIDs   map[pathKey]*entry
	ids       identities

	problems, warnings []manifest.Problem
}

// compile returns nil where there are problems.
func (c *compiler) compile() *Compiled {
	c.objects.Sort()
	c.problems = append(c.problems, c.objects.Duplicates()...)
	c.compileBindings()
	c.compileConfigurations()
	c.compileClusters()
	c.compileChains()
	c.lint()
	manifest.SortProblems(c.problems)
	manifest.SortProblems(c.warnings)
	if len(c.problems) > 0 {
		return nil
	}
	all := c.compiled()
	all.Sources = c.compileSources()
	return all
}

func (c *compiler) compiled() *Compiled {
	all := &Compiled{
		Clusters:   make(map[string]*chain.Cluster, len(c.clusters)),
		Warnings:   c.warnings,
		Targets:    c.targets.used,
		identities: c.ids,
	}
	for _, cluster := range c.clusters {
		all.Clusters[cluster.Name] = cluster
	}
	return all
}

func (c *compiler) problem(ps ...manifest.Problem) { c.problems = append(c.problems, ps...) }

func (c *compiler) warn(ps ...manifest.Problem) { c.warnings = append(c.warnings, ps...) }

// targetTable finds the Target of a spec: the known one where there is one, so
// that connections and health outlive the Snapshot.
type targetTable struct {
	known map[transport.Identity]*transport.Target // read-only
	found map[transport.Identity]*transport.Target
	used  []*transport.Target // in order of first use
}

func (t *targetTable) target(spec transport.TargetSpec) (*transport.Target, error) {
	id := spec.Identity()
	if target, ok := t.found[id]; ok {
		return target, nil
	}
	target, ok := t.known[id]
	if !ok {
		var err error
		if target, err = transport.NewTarget(spec); err != nil {
			return nil, err
		}
	}
	t.found[id] = target
	t.used = append(t.used, target)
	return target, nil
}
