// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/admission-dispatcher/dispatcher/internal/app"
)

func newServe() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve --config FILE",
		Short: "Serve admissions until SIGTERM",
		Long: `Serve admissions until SIGTERM.

SIGHUP looks at configurations and certificates now. SIGTERM or SIGINT fails
readiness, serves on as a lame duck, drains and exits 0; a second one exits at
once.`,
		Args: cobra.NoArgs,
	}
	path := configFlag(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := loadConfig(cmd.ErrOrStderr(), *path)
		if err != nil {
			return err
		}
		a, err := app.New(cfg, newLogger(cmd.ErrOrStderr(), cfg.Log.Level))
		if err != nil {
			return err
		}
		return serve(cmd.Context(), a)
	}
	return cmd
}

// serve runs a under the process's signals.
func serve(ctx context.Context, a *app.App) error {
	ctx, stop := signal.NotifyContext(orBackground(ctx), syscall.SIGTERM, os.Interrupt)
	defer stop()
	// After the first signal the default action of the next one applies.
	context.AfterFunc(ctx, stop)
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		case <-hangups:
			a.Reload()
		}
	}
}

func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}

// newLogger writes one JSON object per line. The configuration has been
// validated, so the level is one of slog's.
func newLogger(w io.Writer, level string) *slog.Logger {
	var l slog.Level
	_ = l.UnmarshalText([]byte(level))
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l}))
}
