// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

func configFlag(cmd *cobra.Command, required bool) *string {
	path := cmd.Flags().String("config", "", "the DispatcherConfiguration file")
	if required {
		_ = cmd.MarkFlagRequired("config") // fails only for a flag that does not exist
	}
	return path
}

// loadConfig reads the configuration file and prints what is wrong with it.
func loadConfig(stderr io.Writer, path string) (*config.Config, error) {
	cfg, problems := config.Load(path)
	if len(problems) > 0 {
		printProblems(stderr, "error", problems)
		return nil, errSaid
	}
	return cfg, nil
}

func printProblems(w io.Writer, kind string, problems []manifest.Problem) {
	for _, p := range problems {
		_, _ = fmt.Fprintf(w, "%s: %s\n", kind, p)
	}
}

// compiledCluster compiles the sources as a running dispatcher would and returns
// one cluster. It prints what is wrong with them.
func compiledCluster(stderr io.Writer, o Options, cfg *config.Config, name string) (*chain.Cluster, error) {
	clusters, err := compiledClusters(stderr, o, cfg, name)
	if err != nil {
		return nil, err
	}
	return clusters[0], nil
}

// compiledClusters is compiledCluster for one cluster, or for all where name is empty: in
// the order of their names.
func compiledClusters(stderr io.Writer, o Options, cfg *config.Config, name string) ([]*chain.Cluster, error) {
	settings := cfg.Registry(nil, nil)
	settings.Compile.Plugins = o.compiledIn
	r := registry.New(settings)
	if problems := r.Load(); len(problems) > 0 {
		printProblems(stderr, "error", problems)
		return nil, errSaid
	}
	clusters := r.Snapshot().Clusters
	names := slices.Sorted(maps.Keys(clusters))
	switch cluster := clusters[name]; {
	case cluster != nil:
		return []*chain.Cluster{cluster}, nil
	case name != "" || len(names) == 0:
		return nil, fmt.Errorf("there is no cluster %q; there are: %s", name, strings.Join(names, ", "))
	}
	all := make([]*chain.Cluster, len(names))
	for i, each := range names {
		all[i] = clusters[each]
	}
	return all, nil
}
