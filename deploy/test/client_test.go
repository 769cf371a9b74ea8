// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"crypto/tls"
	"io"
	"net/http"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

func get(t *testing.T, c *http.Client, url string) (code int, body string) {
	t.Helper()
	response, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// client returns a client that shows a certificate and verifies nothing, as a kubelet's
// probes do.
func client(t *testing.T, shown tls.Certificate) *http.Client {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true}
	if shown.Certificate != nil {
		config.Certificates = []tls.Certificate{shown}
	}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func newAuthority(t *testing.T, name string) *pki.Authority {
	t.Helper()
	authority, err := pki.NewAuthority(name)
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

func certificate(t *testing.T, by *pki.Authority, name string) tls.Certificate {
	t.Helper()
	return issue(t, by, pki.OnLoopback(name))
}

func issue(t *testing.T, by *pki.Authority, s pki.Subject) tls.Certificate {
	t.Helper()
	pair, err := by.Issue(s)
	if err != nil {
		t.Fatal(err)
	}
	made, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	return made
}
