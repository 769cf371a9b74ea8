// SPDX-License-Identifier: Apache-2.0

// Package admin is the listener for those who run the process: whether it lives
// and is ready, and how it is.
package admin

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode"
)

// Config is the configuration of the admin server.
type Config struct {
	// Unready returns why the process should get no traffic; nothing if it
	// should. It is called by several goroutines. Required.
	Unready func() []string
	// Notes returns what is worth knowing of a process that is ready. It is called
	// by several goroutines. Default: nothing is.
	Notes func() []string
	// Metrics serves /metrics. Default: nothing does.
	Metrics http.Handler
	// Status serves every other path: the status page. Default: nothing does.
	Status http.Handler
	// Profiling serves /debug/pprof/.
	Profiling bool
	// CertificateRequired keeps callers without a verified client certificate
	// from everything but the probes: a kubelet presents none.
	CertificateRequired bool
	// OpenMetrics lets them read /metrics, too.
	OpenMetrics bool
	Logger      *slog.Logger // required
}

// New returns the admin server: GET /livez and /readyz, in plain text, /metrics,
// profiles and the status page. Whoever serves it closes it.
func New(cfg Config) *http.Server {
	if cfg.Notes == nil {
		cfg.Notes = func() []string { return nil }
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if why := cfg.Unready(); len(why) > 0 {
			say(w, http.StatusServiceUnavailable, why...)
			return
		}
		say(w, http.StatusOK, append([]string{"ok"}, cfg.Notes()...)...)
	})
	if cfg.Metrics != nil {
		mux.Handle("GET /metrics", unrebound(cfg.Metrics))
	}
	if cfg.Profiling {
		profile(mux)
	}
	if cfg.Status != nil {
		mux.Handle("/", cfg.Status)
	}
	return &http.Server{
		Handler:           cfg.admit(mux),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
	}
}

func say(w http.ResponseWriter, status int, lines ...string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	for _, line := range lines {
		_, _ = fmt.Fprintln(w, strings.Map(printable, line)) // one line each, whatever it quotes
	}
}

func printable(c rune) rune {
	if !unicode.IsPrint(c) || unicode.Is(unicode.Bidi_Control, c) {
		return '\ufffd'
	}
	return c
}
