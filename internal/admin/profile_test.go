// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/admin"
)

func TestProfiles(t *testing.T) {
	for _, c := range []struct {
		name      string
		profiling bool
		protected bool
		host      string
		path      string
		status    int
	}{
		{"none unless asked for", false, false, "localhost", "/debug/pprof/heap", http.StatusNotFound},
		{"the list", true, false, "localhost", "/debug/pprof/", http.StatusOK},
		{"one", true, false, "localhost", "/debug/pprof/heap", http.StatusOK},
		{"symbols", true, false, "localhost", "/debug/pprof/symbol", http.StatusOK},
		{"not for a stranger's site", true, false, "evil.example.com", "/debug/pprof/heap", http.StatusMisdirectedRequest},
		{"not without the certificate", true, true, "localhost", "/debug/pprof/heap", http.StatusForbidden},
	} {
		t.Run(c.name, func(t *testing.T) {
			handler := admin.New(admin.Config{
				Unready:             func() []string { return nil },
				Profiling:           c.profiling,
				CertificateRequired: c.protected,
				Logger:              slog.New(slog.DiscardHandler),
			}).Handler
			request := httptest.NewRequest(http.MethodGet, "http://"+c.host+":8081"+c.path, nil)
			at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8081}
			got := httptest.NewRecorder()
			handler.ServeHTTP(got, request.WithContext(context.WithValue(request.Context(), http.LocalAddrContextKey, at)))
			if got.Code != c.status {
				t.Errorf("%d %q, want %d", got.Code, got.Body, c.status)
			}
		})
	}
}
