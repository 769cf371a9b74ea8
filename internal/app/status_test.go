// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	report "github.com/admission-dispatcher/dispatcher/internal/status"
)

// status asks the admin listener.
func (p *process) status(c *http.Client) (report.Status, error) {
	var s report.Status
	resp, err := c.Get(p.app.AdminURL() + "api/v1/status") //nolint:noctx // bounded by the test
	if err != nil {
		return s, err
	}
	defer c.CloseIdleConnections()
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		return s, fmt.Errorf("HTTP status %d: %s", resp.StatusCode, body)
	}
	return s, json.NewDecoder(resp.Body).Decode(&s)
}

// Everything that a process goes through shows in its status.
func TestStatus(t *testing.T) {
	w := newWorld(t)
	p := w.start("lameDuck: 0s\n")
	client := w.clientOf(p.awaitReady())
	must := func() report.Status {
		t.Helper()
		s, err := p.status(http.DefaultClient)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	w.says(`"allowed":false,"status":{"message":"the secret word"}`)
	if _, err := ask(client); err != nil {
		t.Fatal(err)
	}
	s := must()
	if !s.Ready || s.Version != "test" || s.Snapshot == nil || len(s.History) != 1 || len(s.Problems) != 0 {
		t.Errorf("%+v", s)
	}
	if len(s.Denials) != 1 || s.Denials[0].Name != "p" || s.Denials[0].Webhooks[0].Webhook != "policy.example.com" {
		t.Errorf("denials are %+v", s.Denials)
	}
	if c := s.Clusters[0]; c.Name != "east" || c.Counts.Admissions != 1 || c.Counts.Denied != 1 {
		t.Errorf("cluster %+v", c)
	}
	if e := s.Targets[0].Endpoints; len(e) != 1 || e[0].State != "closed" || s.Targets[0].Attempts != 1 || s.Targets[0].Latency.Attempts != 1 || s.Targets[0].Latency.P99 <= 0 {
		t.Errorf("target %+v", s.Targets[0])
	}
	if c := s.Certificates; len(c) != 2 || c[0].Role != "admission serving" || c[0].Subject != "CN=dispatcher" || c[1].Role != "admission client authority" {
		t.Errorf("certificates are %+v", c)
	}
	w.write("registry/broken.yaml", []byte("kind: Nonsense\n"))
	w.write("serving.crt", []byte("half a certif"))
	eventually(t, "the change and the certificate are refused", func() bool {
		s := must()
		return len(s.Problems) == 1 && s.History[0].Refused && s.Certificates[0].Refused != ""
	})
	page, err := http.Get(p.app.AdminURL()) //nolint:noctx // bounded by the test
	if err != nil {
		t.Fatal(err)
	}
	defer page.Body.Close()
	html, _ := io.ReadAll(page.Body)
	if text := string(html); !strings.Contains(text, "policy.example.com") || strings.Contains(text, "the secret word") {
		t.Errorf("the page is %s", text)
	}
}

// With admin.tls strangers get no further than the probes, and its certificates
// are followed too.
func TestAdminTLS(t *testing.T) {
	w := newWorld(t)
	w.issue("admin", pki.OnLoopback("admin"))
	p := w.startFrom(strings.Replace(fileConfig, `admin: {listen: "127.0.0.1:0"}`,
		`admin: {listen: "127.0.0.1:0", openMetrics: true, tls: {certFile: admin.crt, keyFile: admin.key, clientCAFile: ca.crt}}`, 1) + "lameDuck: 0s\n")
	p.awaitReady()
	operator, err := tls.LoadX509KeyPair(filepath.Join(w.dir, "east.crt"), filepath.Join(w.dir, "east.key"))
	if err != nil {
		t.Fatal(err)
	}
	clientWith := func(certificates ...tls.Certificate) *http.Client {
		transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: w.authority.Pool(), Certificates: certificates}}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport}
	}
	known, stranger := clientWith(operator), clientWith()
	s, err := p.status(known)
	if err != nil || len(s.Certificates) != 4 || s.Certificates[2].Subject != "CN=admin" {
		t.Errorf("with a certificate: %+v, %v", s.Certificates, err)
	}
	if _, err := p.status(stranger); err == nil || !strings.Contains(err.Error(), "certificate of admin.tls.clientCAFile") {
		t.Errorf("without a certificate: %v", err)
	}
	for _, open := range []string{"readyz", "metrics"} { // admin.openMetrics
		resp, err := stranger.Get(p.app.AdminURL() + open) //nolint:noctx // bounded by the test
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: HTTP status %d", open, resp.StatusCode)
		}
	}
	w.issue("admin", pki.OnLoopback("successor"))
	eventually(t, "the new certificate is served", func() bool {
		s, err := p.status(known)
		return err == nil && s.Certificates[2].Subject == "CN=successor"
	})
}
