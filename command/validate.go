// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/registration"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// validation is what validate prints with -o json.
type validation struct {
	Problems []manifest.Problem `json:"problems"`
	Warnings []manifest.Problem `json:"warnings"`
}

func newValidate(o Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate [--config FILE] [PATH...]",
		Short: "Check configurations as a running dispatcher would, and print every problem",
		Long: `Check configurations as a running dispatcher would, and print every problem and
every warning with file, object, field path and reason. A PATH is a directory or
a file; without one the sources of the configuration file are checked. Nothing
is contacted. The exit code is 1 if there is any problem; warnings do not count.`,
	}
	path := configFlag(cmd, false)
	format := outputFlag(cmd)
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 && *path == "" {
			return errors.New("name a PATH or a --config FILE")
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		result := validate(o, *path, args)
		if err := printValidation(cmd.OutOrStdout(), *format, result); err != nil {
			return err
		}
		if len(result.Problems) > 0 {
			return errSaid
		}
		return nil
	}
	return cmd
}

// validate checks the configuration file, if there is one, and what it or paths
// name.
func validate(o Options, configPath string, paths []string) validation {
	var (
		settings registry.Settings
		own      []manifest.Problem // warnings of the configuration file
	)
	if configPath != "" {
		cfg, problems := config.Load(configPath)
		if len(problems) > 0 {
			return validation{Problems: problems, Warnings: []manifest.Problem{}}
		}
		settings, own = cfg.Registry(nil, nil), cfg.Warnings(configPath)
	}
	if configPath == "" { // then what most configurations have
		settings.Compile.Bypass, settings.Compile.FailOpen = exempt.DefaultBypass(""), exempt.DefaultFailOpen()
	}
	if len(paths) > 0 {
		settings.Sources = manifest.Directories(paths...)
	}
	settings.Compile.Plugins = o.compiledIn
	snapshot, problems, warnings := registry.Validate(settings)
	return validation{Problems: orEmpty(problems), Warnings: orEmpty(slices.Concat(own, warnings, unregistrable(snapshot)))}
}

// unregistrable warns about clusters for which "dispatcher registration" would
// fail: what is served is not concerned.
func unregistrable(s *compile.Compiled) []manifest.Problem {
	if s == nil {
		return nil
	}
	var warnings []manifest.Problem
	for _, name := range slices.Sorted(maps.Keys(s.Clusters)) {
		if _, err := registration.New(s.Clusters[name], registration.Options{Static: true}); err != nil {
			warnings = append(warnings, manifest.Problem{Object: "Cluster/" + name, Reason: strings.ReplaceAll(err.Error(), "\n", "; ")})
		}
	}
	return warnings
}

// orEmpty makes a list print as [] where it would be null.
func orEmpty(list []manifest.Problem) []manifest.Problem {
	if list == nil {
		return []manifest.Problem{}
	}
	return list
}

func printValidation(w io.Writer, format output, v validation) error {
	if format == asJSON {
		return printJSON(w, v)
	}
	if len(v.Problems)+len(v.Warnings) > 0 {
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(tw, "KIND\tFILE\tOBJECT\tFIELD\tREASON")
		printRows(tw, "problem", v.Problems)
		printRows(tw, "warning", v.Warnings)
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s, %s\n", count(len(v.Problems), "problem"), count(len(v.Warnings), "warning"))
	return err
}

func printRows(w io.Writer, kind string, list []manifest.Problem) {
	for _, p := range list {
		reason := p.Reason
		if p.Value != "" {
			reason = fmt.Sprintf("%q: %s", p.Value, p.Reason)
		}
		if p.Rule != "" {
			reason += " (" + p.Rule + ")"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", kind, dash(p.File), dash(p.Object), dash(p.Field), reason)
	}
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
