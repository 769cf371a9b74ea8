// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/internal/celenv"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// compiler turns objects into a Snapshot. It starts nothing and dials nothing:
// the same objects, files, settings and time give the same Snapshot.
type compiler struct {
	settings Settings
	cel      *celenv.Compiler
	now      time.Time
	objects  *objects
	files    files
	// kubeconfigs are what the files say that Clusters name.
	kubeconfigs map[reference]kubeAccess
	current     *Snapshot // that is served; nil: none
	targets     targetTable

	bindings  []*binding
	endpoints map[endpointsKey][]webhook.EndpointSpec
	entries   [2][]*entry // by Phase, in configuration and list order
	clusters  []*chain.Cluster
	accesses  map[string]KubeAccess // by cluster
	chains    chainTable
	pathIDs   map[pathKey]*entry
	ids       identities

	problems, warnings []Problem
}

// compile returns the Snapshot, or every problem that stands in its way.
func (c *compiler) compile() *Snapshot {
	c.objects.sort()
	c.problems = append(c.problems, c.objects.duplicates()...)
	c.compileBindings()
	c.compileConfigurations()
	c.compileClusters()
	c.compileChains()
	c.lint()
	sortProblems(c.problems)
	sortProblems(c.warnings)
	if len(c.problems) > 0 {
		return nil
	}
	c.compileSources()
	return c.snapshot()
}

func (c *compiler) snapshot() *Snapshot {
	s := &Snapshot{
		Clusters:   make(map[string]*chain.Cluster, len(c.clusters)),
		Warnings:   c.warnings,
		Targets:    c.targets.used,
		identities: c.ids,
		users:      new(atomic.Int64),
	}
	for _, cluster := range c.clusters {
		s.Clusters[cluster.Name] = cluster
	}
	return s
}

func (c *compiler) problem(ps ...Problem) { c.problems = append(c.problems, ps...) }

func (c *compiler) warn(ps ...Problem) { c.warnings = append(c.warnings, ps...) }

// targetTable finds the Target of a spec: the known one where there is one, so
// that connections and health outlive the Snapshot.
type targetTable struct {
	known map[webhook.Identity]*webhook.Target // read-only
	found map[webhook.Identity]*webhook.Target
	used  []*webhook.Target // in order of first use
}

func (t *targetTable) target(spec webhook.TargetSpec) (*webhook.Target, error) {
	id := spec.Identity()
	if target, ok := t.found[id]; ok {
		return target, nil
	}
	target, ok := t.known[id]
	if !ok {
		var err error
		if target, err = webhook.NewTarget(spec); err != nil {
			return nil, err
		}
	}
	t.found[id] = target
	t.used = append(t.used, target)
	return target, nil
}
