// SPDX-License-Identifier: Apache-2.0

package replica_test

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// deadWebhook is one that answers every call with an error, and counts.
func (w *world) deadWebhook() (attempts *atomic.Int64) {
	w.t.Helper()
	w.issue("webhook", "webhook")
	pair, err := tls.LoadX509KeyPair(filepath.Join(w.dir, "webhook.crt"), filepath.Join(w.dir, "webhook.key"))
	w.must(err)
	attempts = new(atomic.Int64)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		attempts.Add(1)
		rw.WriteHeader(http.StatusInternalServerError)
	}))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	w.t.Cleanup(server.Close)
	w.write("registry/webhook.yaml", fmt.Appendf(nil, `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: dead}
webhooks:
- name: dead.example.com
  clientConfig: {url: %q, caBundle: %s}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
  failurePolicy: Ignore
  sideEffects: None
  admissionReviewVersions: [v1]
`, server.URL, base64.StdEncoding.EncodeToString(w.authority.PEM)))
	return attempts
}

// attemptsAt returns how many attempts so many replicas make at a dead webhook in a time,
// once its circuits are open. Each is called all the time.
func attemptsAt(t *testing.T, binary, config string, replicas int) (attempts int64) {
	t.Helper()
	const opening, window = 2 * time.Second, 6 * time.Second
	t.Run(fmt.Sprintf("%d replicas, %s", replicas, config), func(t *testing.T) {
		w := newWorld(t, binary, "lameDuck: 0s\nallowedNetworks: [127.0.0.0/8]\n"+config)
		counted := w.deadWebhook()
		for range replicas {
			w.join()
		}
		certificate, err := tls.LoadX509KeyPair(filepath.Join(w.dir, "east.crt"), filepath.Join(w.dir, "east.key"))
		w.must(err)
		var running sync.WaitGroup
		ended := make(chan struct{})
		for _, r := range w.replicas {
			running.Go(func() {
				transport := &http.Transport{TLSClientConfig: &tls.Config{
					MinVersion: tls.VersionTLS12, RootCAs: w.authority.Pool(), ServerName: "127.0.0.1", Certificates: []tls.Certificate{certificate},
				}}
				defer transport.CloseIdleConnections()
				for pace := time.NewTicker(10 * time.Millisecond); ; {
					select {
					case <-ended:
						pace.Stop()
						return
					case <-pace.C:
					}
					resp, err := (&http.Client{Transport: transport}).Post("https://"+r.listen+"/v1/clusters/east/validate?timeout=10s", "application/json", strings.NewReader(review)) //nolint:noctx // bounded by the test
					if err != nil {
						t.Errorf("a call is lost: %v", err)
						return
					}
					_ = resp.Body.Close()
				}
			})
		}
		<-time.After(opening)
		before := counted.Load()
		<-time.After(window)
		attempts = counted.Load() - before
		close(ended)
		running.Wait()
	})
	return attempts
}

// Replicas that know of each other make no more attempts at a dead webhook together than
// one alone. Those that do not make that many times as many.
func TestDeadWebhook(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds and runs three processes")
	}
	const replicas = 3
	binary := build(t)
	alone := attemptsAt(t, binary, "", 1)
	told := attemptsAt(t, binary, fmt.Sprintf("fleet: {replicas: %d}", replicas), replicas)
	untold := attemptsAt(t, binary, "", replicas)
	t.Logf("attempts at a dead webhook: %d by one alone, %d by three that know of each other, %d by three that do not", alone, told, untold)
	if float64(told) > 1.5*float64(alone) {
		t.Error("they grow with the replicas")
	}
	if float64(untold) < 2*float64(alone) {
		t.Error("they do not grow where nobody knows of the others: the test shows nothing")
	}
}
