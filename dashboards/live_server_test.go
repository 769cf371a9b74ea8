// SPDX-License-Identifier: Apache-2.0

package dashboards_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
	"github.com/admission-dispatcher/dispatcher/loadtest/proxy"
	"github.com/admission-dispatcher/dispatcher/loadtest/script"
)

// hurt are the webhooks that the outage is of.
var hurt = []string{"guard.example.com", "notary.example.com", "advice.example.com", "quota.example.com", "scan.example.com"}

// unwilling is the truth of a webhook that denies everything.
func unwilling(string) history.Answer {
	return history.Answer{Code: http.StatusForbidden, Message: "no"}
}

// serveWebhooks starts an endpoint of all webhooks, of which the twin is of this
// mind.
func (f *fleet) serveWebhooks(twin func(uid string) history.Answer) *script.Server {
	f.t.Helper()
	truths := map[string]func(string) history.Answer{
		"defaults.example.com": script.Mutating("defaults.example.com"),
		"twin.example.com":     twin,
		"trial.example.com":    unwilling,
	}
	for _, name := range hurt {
		truths[name] = script.Willing
	}
	s := script.Serve(script.Config{Name: "hooks", Start: time.Now(), Certificate: f.issue("hooks"), Truths: truths})
	f.t.Cleanup(s.Close)
	return s
}

// serveNamespaces starts the API of a cluster without namespaces.
func (f *fleet) serveNamespaces() *httptest.Server {
	f.t.Helper()
	api := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			_, _ = fmt.Fprint(w, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"1"},"items":[]}`)
			return
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	api.TLS = &tls.Config{Certificates: []tls.Certificate{f.issue("api")}, MinVersion: tls.VersionTLS12}
	api.Config.ErrorLog = log.New(io.Discard, "", 0)
	api.StartTLS()
	return api
}

// serveCollector starts a collector that keeps no traces.
func serveCollector() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
}

// before puts a proxy before a server, which it ends with the test.
func (f *fleet) before(s *httptest.Server) *proxy.Proxy {
	f.t.Helper()
	f.t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return f.proxy(s.Listener.Addr().String())
}
