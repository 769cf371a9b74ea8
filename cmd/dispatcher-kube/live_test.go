// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The dispatcher beside is asked whatever its certificate says, and nobody else is.
func TestLive(t *testing.T) {
	code := http.StatusOK
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	defer server.Close()
	live, err := asker(server.URL + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	if err := live(t.Context()); err != nil {
		t.Errorf("alive: %v", err)
	}
	code = http.StatusServiceUnavailable
	if err := live(t.Context()); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("not alive: %v", err)
	}
	server.Close()
	if live(t.Context()) == nil {
		t.Error("gone, and alive")
	}
	for _, address := range []string{"https://dispatcher.example.com/livez", "https://10.0.0.1:8081/livez", "127.0.0.1:8081", "ftp://127.0.0.1/", "http://127.0.0.1.example.com/"} {
		if _, err := asker(address); err == nil {
			t.Errorf("%s is asked", address)
		}
	}
}
