// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/admin"
)

func TestProbes(t *testing.T) {
	var why []string
	handler := admin.New(admin.Config{
		Unready: func() []string { return why },
		Logger:  slog.New(slog.DiscardHandler),
	}).Handler
	for _, c := range []struct {
		name, method, path string
		why                []string
		status             int
		body               string
	}{
		{"lives", http.MethodGet, "/livez", nil, http.StatusOK, "ok\n"},
		{"lives while it is not ready", http.MethodGet, "/livez", []string{"stopping"}, http.StatusOK, "ok\n"},
		{"ready", http.MethodGet, "/readyz", nil, http.StatusOK, "ok\n"},
		{"not ready, with every reason", http.MethodGet, "/readyz", []string{"one", "two"}, http.StatusServiceUnavailable, "one\ntwo\n"},
		{"a reason that quotes something", http.MethodGet, "/readyz", []string{"one\nok\x1b[2J\u202e"}, http.StatusServiceUnavailable, "one\ufffdok\ufffd[2J\ufffd\n"},
		{"by HEAD", http.MethodHead, "/readyz", []string{"one"}, http.StatusServiceUnavailable, "one\n"},
		{"only GET", http.MethodPost, "/livez", nil, http.StatusMethodNotAllowed, "Method Not Allowed\n"},
		{"nothing else", http.MethodGet, "/", nil, http.StatusNotFound, "404 page not found\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			why = c.why
			got := httptest.NewRecorder()
			handler.ServeHTTP(got, httptest.NewRequest(c.method, c.path, nil))
			if got.Code != c.status || got.Body.String() != c.body {
				t.Errorf("%d %q, want %d %q", got.Code, got.Body, c.status, c.body)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	handler := admin.New(admin.Config{
		Unready: func() []string { return nil },
		Notes:   func() []string { return []string{"one", "two"} },
		Logger:  slog.New(slog.DiscardHandler),
	}).Handler
	got := httptest.NewRecorder()
	handler.ServeHTTP(got, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if got.Code != http.StatusOK || got.Body.String() != "ok\none\ntwo\n" {
		t.Errorf("%d %q", got.Code, got.Body)
	}
}
