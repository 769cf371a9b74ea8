// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/pki"
)

// Another authority of clients takes effect for the next connection; while its
// file is not whole, or is gone, the last good one stays, and that is said once.
func TestClientCAReload(t *testing.T) {
	w := newWorld(t)
	p := w.start("lameDuck: 0s\n")
	address := p.awaitReady()
	allowed := func() bool {
		c := w.clientOf(address) // a new one: a connection of its own
		defer c.CloseIdleConnections()
		got, err := ask(c)
		return err == nil && got.allowed
	}
	if !allowed() {
		t.Fatal("the caller is not let in")
	}
	w.write("ca.crt", w.authority.PEM[:len(w.authority.PEM)/2])
	eventually(t, "half a file is logged", func() bool { return w.logged("holds no PEM certificate") || w.logged("incomplete PEM block") })
	if !allowed() {
		t.Error("half a file locks the caller out")
	}
	if n := w.loggedTimes("certificates refused"); n != 1 {
		t.Errorf("half a file is logged %d times", n)
	}
	other, err := pki.NewAuthority("other")
	if err != nil {
		t.Fatal(err)
	}
	w.write("ca.crt", other.PEM)
	eventually(t, "the caller of the former authority is refused", func() bool { return !allowed() })
	w.write("ca.crt", append(other.PEM, w.authority.PEM...))
	eventually(t, "the caller is let in again", allowed)
}

// A certificate and a key of different pairs never take effect.
func TestCertificateOfAnotherKey(t *testing.T) {
	w := newWorld(t)
	p := w.start("lameDuck: 0s\n")
	address := p.awaitReady()
	pair, err := w.authority.Issue(pki.Subject{CommonName: "successor", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	w.write("serving.crt", pair.Certificate)
	eventually(t, "the mismatch is logged", func() bool { return w.logged("private key does not match public key") })
	if name := servedName(t, w, address); name != "dispatcher" {
		t.Errorf("%s is served", name)
	}
	w.write("serving.key", pair.Key)
	eventually(t, "the new pair is served", func() bool { return servedName(t, w, address) == "successor" })
}

// Each certificate that can end has its role in the metrics, also those of the
// admin listener.
func TestExpiryOfEachRole(t *testing.T) {
	w := newWorld(t)
	w.issue("admin", pki.Subject{CommonName: "admin", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	p := w.startFrom(strings.Replace(fileConfig, `admin: {listen: "127.0.0.1:0"}`,
		`admin: {listen: "127.0.0.1:0", tls: {certFile: admin.crt, keyFile: admin.key, clientCAFile: ca.crt}}`, 1) + "lameDuck: 0s\n")
	p.awaitReady()
	operator, err := tls.LoadX509KeyPair(filepath.Join(w.dir, "east.crt"), filepath.Join(w.dir, "east.key"))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: w.authority.Pool(), Certificates: []tls.Certificate{operator}}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get(p.app.AdminURL() + "metrics") //nolint:noctx // bounded by the test
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"serving", "client_ca", "admin_serving", "admin_client_ca"} {
		if want := `dispatcher_certificate_expiry_timestamp_seconds{role="` + role + `"} `; !strings.Contains(string(page), want) {
			t.Errorf("no %s", want)
		}
	}
}
