// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// versionInfo is what version prints with -o json.
type versionInfo struct {
	Version  string   `json:"version"`
	Revision string   `json:"revision,omitempty"`
	Go       string   `json:"go"`
	Platform string   `json:"platform"`
	Plugins  []string `json:"plugins"` // that are compiled in
}

func newVersion(o Options) *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Print the version and the plugins that are compiled in", Args: cobra.NoArgs}
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		info := versionInfo{Version: o.Version, Revision: revision(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Plugins: slices.Sorted(maps.Keys(o.compiledIn))}
		if *format == asJSON {
			return printJSON(cmd.OutOrStdout(), info)
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "dispatcher %s (%s, %s)\nplugins: %s\n", info.Version, info.Go, info.Platform, strings.Join(info.Plugins, ", "))
		return err
	}
	return cmd
}

func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}
