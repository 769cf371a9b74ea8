// SPDX-License-Identifier: Apache-2.0

// Package admin is the listener for those who run the process: whether it lives
// and is ready.
package admin

import (
	"fmt"
	"net/http"
	"time"
)

// Readiness tells why the process should get no traffic; empty if it should.
type Readiness func() []string

// New returns the admin server; whoever serves it ends it.
func New(ready Readiness) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		why := ready()
		if len(why) == 0 {
			say(w, http.StatusOK, "ok")
			return
		}
		say(w, http.StatusServiceUnavailable, why...)
	})
	return &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16 << 10,
	}
}

func say(w http.ResponseWriter, status int, lines ...string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	for _, line := range lines {
		_, _ = fmt.Fprintln(w, line)
	}
}
