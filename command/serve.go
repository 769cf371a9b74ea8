// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io"
	"log/slog"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/admission-dispatcher/dispatcher/internal/app"
	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/internal/logging"
	"github.com/admission-dispatcher/dispatcher/internal/otlp"
)

func newServe(o Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve --config FILE",
		Short: "Serve admissions until SIGTERM",
		Long: `Serve admissions until SIGTERM.

SIGHUP looks at sources and certificates now. SIGUSR1 changes the level of the log to
debug, and back. SIGTERM or SIGINT fails readiness,
serves on as a lame duck, drains and exits 0; a second one exits at once.`,
		Args: cobra.NoArgs,
	}
	path := configFlag(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := loadConfig(cmd.ErrOrStderr(), *path)
		if err != nil {
			return err
		}
		log := newLog(cmd.ErrOrStderr(), cfg.Log)
		defer log.Close()
		otlp.Redirect(log.Logger, os.Getenv)
		limitMemory(os.DirFS("/"), os.Getenv, log.Logger)
		a, err := app.New(cfg, app.Options{Version: o.Version, Plugins: o.compiledIn, Logger: log.Logger, Dropped: log.Dropped})
		if err != nil {
			return err
		}
		ctx, stop := untilSignal(cmd.Context())
		defer stop()
		defer on(syscall.SIGHUP, a.Reload)()
		defer onDebug(log.ToggleDebug)()
		return a.Run(ctx)
	}
	return cmd
}

// newLog returns the log. The configuration has been validated, so the level is one of
// slog's.
func newLog(w io.Writer, cfg config.Log) *logging.Log {
	var l slog.Level
	_ = l.UnmarshalText([]byte(cfg.Level))
	return logging.NewFormat(w, l, logging.Format(cfg.Format))
}
