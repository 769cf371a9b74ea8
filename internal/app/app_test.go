// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

func TestServe(t *testing.T) {
	w := newWorld(t)
	p := w.start("lameDuck: 0s\n")
	c := w.clientOf(p.awaitReady())
	if got, err := ask(c); err != nil || !got.allowed {
		t.Errorf("verdict is %+v, %v", got, err)
	}
	w.says(`"allowed":false,"status":{"code":403,"message":"no"}`)
	if got, err := ask(c); err != nil || got.allowed || !strings.Contains(got.message, `"policy.example.com" denied the request: no`) {
		t.Errorf("verdict is %+v, %v", got, err)
	}
	if status, body := p.readiness(); status != http.StatusOK {
		t.Errorf("readiness is %d %s", status, body)
	}
}

// Without any configuration the admission listener is not opened: a caller that
// cannot connect applies its own failure policy.
func TestNoConfiguration(t *testing.T) {
	w := newWorld(t)
	manifest, err := os.ReadFile(filepath.Join(w.dir, "registry/webhooks.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w.write("registry/webhooks.yaml", []byte("kind: Nonsense\n"))
	p := w.start("lameDuck: 0s\n")
	eventually(t, "the problem is logged", func() bool { return w.logged("configuration refused") })
	if status, body := p.readiness(); status != http.StatusServiceUnavailable ||
		!strings.Contains(body, "no configuration") || !strings.Contains(body, "webhooks.yaml: apiVersion and kind are required") {
		t.Errorf("readiness is %d %s", status, body)
	}
	if p.app.Address() != nil {
		t.Error("the admission listener is open")
	}
	w.write("registry/webhooks.yaml", manifest)
	if got, err := ask(w.clientOf(p.awaitReady())); err != nil || !got.allowed {
		t.Errorf("verdict is %+v, %v", got, err)
	}
}

// A change takes effect; one with a problem does not, and is said.
func TestReload(t *testing.T) {
	w := newWorld(t)
	w.says(`"allowed":false,"status":{"message":"no"}`)
	p := w.start("lameDuck: 0s\n")
	c := w.clientOf(p.awaitReady())
	deniedBy := func(name string) func() bool {
		return func() bool {
			got, err := ask(c)
			if err != nil || got.allowed {
				t.Fatalf("verdict is %+v, %v", got, err)
			}
			return strings.Contains(got.message, `"`+name+`.example.com"`)
		}
	}
	eventually(t, "the first configuration", deniedBy("policy"))
	w.configure("other")
	eventually(t, "the changed configuration", deniedBy("other"))
	w.write("registry/broken.yaml", []byte("apiVersion: v1\nkind: Pod\n"))
	eventually(t, "the problem is logged", func() bool { return w.logged("broken.yaml") })
	if !deniedBy("other")() {
		t.Error("the last good configuration does not stay")
	}
	if status, _ := p.readiness(); status != http.StatusOK {
		t.Error("a bad change makes the process unready")
	}
}

// The rows A and B of docs/contract.md that only show with a whole process.
func TestRequests(t *testing.T) {
	w := newWorld(t)
	p := w.start("lameDuck: 0s\n")
	c := w.clientOf(p.awaitReady())

	t.Run("B23 the same uid twice at once", func(t *testing.T) {
		// The first is answered only when the second has arrived.
		arrived := make(chan struct{}, 2)
		both := make(chan struct{})
		go func() { <-arrived; <-arrived; close(both) }()
		w.answers(func(rw http.ResponseWriter, uid string) {
			arrived <- struct{}{}
			<-both
			says(`"allowed":true`)(rw, uid)
		})
		results := make(chan error, 2)
		for range 2 {
			go func() {
				got, err := ask(c)
				if err == nil && !got.allowed {
					err = errors.New(got.message)
				}
				results <- err
			}()
		}
		for range 2 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("B24 baggage is not passed on", func(t *testing.T) {
		w.says(`"allowed":true`)
		seen := w.headersOf(func() { askWith(t, c, http.Header{"Traceparent": {"not-one"}, "Baggage": {"secret=1"}}) })
		if seen.Get("Baggage") != "" || seen.Get("Traceparent") == "not-one" {
			t.Errorf("the webhook sees %v", seen)
		}
		if seen.Get("Admission-Cluster") != "east" {
			t.Errorf("the webhook sees cluster %q", seen.Get("Admission-Cluster"))
		}
	})
}

// askWith sends a review with further headers.
func askWith(t *testing.T, c *http.Client, header http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://127.0.0.1/v1/clusters/east/validate", strings.NewReader(podReview))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("HTTP status %d", resp.StatusCode)
	}
}

// A serving certificate is replaced while a connection is open.
func TestCertificateReload(t *testing.T) {
	w := newWorld(t)
	p := w.start("lameDuck: 0s\n")
	address := p.awaitReady()
	kept := w.clientOf(address)
	if _, err := ask(kept); err != nil {
		t.Fatal(err)
	}
	w.write("serving.crt", []byte("half a certif"))
	eventually(t, "the bad certificate is logged", func() bool { return w.logged("certificates refused") })
	w.issue("serving", pki.OnLoopback("successor"))
	eventually(t, "the new certificate is served", func() bool { return servedName(t, w, address) == "successor" })
	if _, err := ask(kept); err != nil {
		t.Errorf("the open connection does not go on: %v", err)
	}
}

func servedName(t *testing.T, w *world, address string) string {
	t.Helper()
	certificate, err := tls.LoadX509KeyPair(filepath.Join(w.dir, "east.crt"), filepath.Join(w.dir, "east.key"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", address, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: w.authority.Pool(), Certificates: []tls.Certificate{certificate}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
}
