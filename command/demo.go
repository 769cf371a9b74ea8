// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/admission-dispatcher/dispatcher/internal/demo"
)

func newDemo(o Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo [--exit]",
		Short: "Run the main job with nothing to set up: three clusters, five webhooks, and what comes of it",
		Long: `Run the main job with nothing to set up: a dispatcher, sample webhooks and
throw-away certificates in one process, on loopback. It plays admissions the way
kube-apiserver sends them, prints what came of each, and compares that with what
is expected; the exit code is 1 on any difference. On a terminal it stays up to
be tried with curl.`,
		Args: cobra.NoArgs,
	}
	exit := cmd.Flags().Bool("exit", false, "end after the table, also on a terminal")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := untilSignal(cmd.Context(), hangup()...) // it leaves no keys behind
		defer stop()
		stdout := cmd.OutOrStdout()
		return demo.Run(ctx, demo.Config{Stdout: stdout, Stay: !*exit && isTerminal(stdout), Version: o.Version})
	}
	return cmd
}

// isTerminal reports whether a person may look at what is written.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
