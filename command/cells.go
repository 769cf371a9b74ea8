// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/admission-dispatcher/dispatcher/fleet"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

func newCells() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cells",
		Short: "Say which cell each Cluster should be in",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return &usageError{cmd.CommandPath(), errors.New("name a command: plan")}
		},
	}
	cmd.AddCommand(newCellsPlan())
	return cmd
}

func newCellsPlan() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan [--cells NAME,...] [--limit N] PATH...",
		Short: "Propose spec.cell for Clusters that need one",
		Long: `Propose spec.cell for each Cluster that has none, whose cell is not among the
cells, or whose cell has more than its limit. All others stay. Nothing is changed.
A PATH is a directory or a file with Clusters; - is standard input, such as
"kubectl get clusters.dispatcher.dev -o yaml". To move a cluster that is in a
cell, set spec.previousCell to that one together with spec.cell. The exit code is
1 if there is a problem, or no room for a Cluster.`,
		Args: cobra.MinimumNArgs(1),
	}
	cells := cmd.Flags().StringSlice("cells", nil, "the cells that there are. Default: those that Clusters name")
	limit := cmd.Flags().Int("limit", fleet.DefaultCellLimit, "how many Clusters a cell has at most")
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkCells(*cells, *limit); err != nil {
			return &usageError{cmd.CommandPath(), err}
		}
		var sources []manifest.Source
		for _, path := range args {
			if path == "-" {
				sources = append(sources, streamed{cmd.InOrStdin()})
				continue
			}
			sources = append(sources, manifest.Directories(path)...)
		}
		clusters, problems := manifest.Clusters(cmd.Context(), sources...)
		if len(problems) > 0 {
			printProblems(cmd.ErrOrStderr(), "error", problems)
			return errSaid
		}
		return planCells(cmd, clusters, *cells, *limit, *format)
	}
	return cmd
}

func checkCells(cells []string, limit int) error {
	if limit < 1 {
		return fmt.Errorf("--limit must be above zero, not %d", limit)
	}
	for _, cell := range cells {
		if len(utilvalidation.IsDNS1123Label(cell)) > 0 {
			return fmt.Errorf("--cells: %q is not a DNS label such as c7", cell)
		}
	}
	return nil
}

// planCells prints the plan for clusters.
func planCells(cmd *cobra.Command, clusters []manifest.Cluster, cells []string, limit int, format output) error {
	var placed []fleet.Placement
	named := slices.Clone(cells)
	for i := range clusters {
		cell := clusters[i].Spec.Cell
		placed = append(placed, fleet.Placement{Cluster: clusters[i].Name, Cell: cell})
		if len(cells) == 0 && cell != "" {
			named = append(named, cell)
		}
	}
	if len(named) == 0 && len(placed) > 0 {
		return errors.New("no Cluster names a cell: say with --cells which there are")
	}
	plan := fleet.PlanCells(placed, named, limit)
	if format == asJSON {
		if err := printJSON(cmd.OutOrStdout(), plan); err != nil {
			return err
		}
	} else if err := printPlan(cmd.OutOrStdout(), plan); err != nil {
		return err
	}
	if n := len(plan.Unplaced); n > 0 {
		return fmt.Errorf("no cell has room for %s (%s): add a cell, or raise --limit", count(n, "Cluster"), shown(plan.Unplaced))
	}
	return nil
}

// maxShown is how many names an error has.
const maxShown = 5

func shown(names []string) string {
	if len(names) > maxShown {
		return strings.Join(names[:maxShown], ", ") + " ..."
	}
	return strings.Join(names, ", ")
}

func printPlan(w io.Writer, plan fleet.Plan) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(tw, "CELL\tCLUSTERS\tAFTER")
	for _, c := range plan.Cells {
		_, _ = fmt.Fprintf(tw, "%s\t%d\t%d\n", c.Cell, c.Before, c.After)
	}
	if len(plan.Moves) > 0 {
		_, _ = fmt.Fprintln(tw, "\nCLUSTER\tCELL\tPREVIOUS CELL\tWHY")
	}
	for _, m := range plan.Moves {
		_, _ = fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", m.Cluster, m.To, dash(m.From), m.Reason)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, count(len(plan.Moves), "change"))
	return err
}

// streamed is manifests that are read from a stream, once, as a Source.
type streamed struct{ io.Reader }

// Name implements manifest.Source.
func (streamed) Name() string { return "standard input" }

// Read implements manifest.Source.
func (s streamed) Read(context.Context) []manifest.File {
	f := manifest.File{Name: s.Name()}
	f.Data, f.Err = io.ReadAll(s.Reader)
	return []manifest.File{f}
}
