// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/registry"
)

// compiledCluster compiles the sources as a running dispatcher would and returns
// one cluster. It prints what is wrong with them.
func compiledCluster(stderr io.Writer, cfg *config.Config, name string) (*chain.Cluster, error) {
	r := registry.New(cfg.Registry(nil, nil))
	if problems := r.Load(); len(problems) > 0 {
		printProblems(stderr, "error", problems)
		return nil, errSaid
	}
	clusters := r.Snapshot().Clusters
	cluster := clusters[name]
	if cluster == nil {
		names := slices.Sorted(maps.Keys(clusters))
		return nil, fmt.Errorf("there is no cluster %q; there are: %s", name, strings.Join(names, ", "))
	}
	return cluster, nil
}
