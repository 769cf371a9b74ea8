// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/admission-dispatcher/dispatcher/internal/demo"
)

func newDemo() *cobra.Command {
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
		ctx, stop := signal.NotifyContext(orBackground(cmd.Context()), syscall.SIGTERM, os.Interrupt)
		defer stop()
		return demo.Run(ctx, demo.Config{Stdout: cmd.OutOrStdout(), Stay: !*exit && isTerminal(cmd.OutOrStdout())})
	}
	return cmd
}

// isTerminal reports whether w is a character device that a person may look at.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
