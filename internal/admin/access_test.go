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

// A page of another site cannot have a browser start a profile; go tool pprof, our own
// pages and an address that somebody types can.
func TestProfilesAreForNoOtherSite(t *testing.T) {
	handler := admin.New(admin.Config{
		Unready:   func() []string { return nil },
		Profiling: true,
		Logger:    slog.New(slog.DiscardHandler),
	}).Handler
	for _, c := range []struct {
		name, header, value string
		status              int
	}{
		{"no browser", "User-Agent", "go tool pprof", http.StatusOK},
		{"typed", "Sec-Fetch-Site", "none", http.StatusOK},
		{"own page", "Sec-Fetch-Site", "same-origin", http.StatusOK},
		{"another port of the host", "Sec-Fetch-Site", "same-site", http.StatusForbidden},
		{"another site", "Sec-Fetch-Site", "cross-site", http.StatusForbidden},
		{"own page, an old browser", "Origin", "http://localhost:8081", http.StatusOK},
		{"another site, an old browser", "Origin", "http://evil.example.com", http.StatusForbidden},
		{"a sandbox, an old browser", "Origin", "null", http.StatusForbidden},
		{"an image in another site, an old browser", "Referer", "http://evil.example.com/page", http.StatusForbidden},
	} {
		t.Run(c.name, func(t *testing.T) {
			request := httptest.NewRequest(http.MethodGet, "http://localhost:8081/debug/pprof/cmdline", nil)
			request.Header.Set(c.header, c.value)
			got := httptest.NewRecorder()
			handler.ServeHTTP(got, request)
			if got.Code != c.status {
				t.Errorf("%d %q, want %d", got.Code, got.Body, c.status)
			}
		})
	}
}
