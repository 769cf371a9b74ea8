// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
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
	pair, err := w.authority.Issue(pki.OnLoopback("successor"))
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

// Reload looks at the certificates of both listeners at once.
func TestReloadReadsCertificates(t *testing.T) {
	w := newWorld(t)
	w.issue("admin", pki.OnLoopback("admin"))
	p := w.startFrom(strings.Replace(fileConfig, `admin: {listen: "127.0.0.1:0"}`,
		`admin: {listen: "127.0.0.1:0", tls: {certFile: admin.crt, keyFile: admin.key}}`, 1) + "lameDuck: 0s\nreloadInterval: 1h\n")
	listeners := map[string]string{"serving": p.awaitReady(), "admin": p.app.AdminAddress().String()}
	for name := range listeners {
		w.issue(name, pki.OnLoopback("successor of "+name))
	}
	p.app.Reload()
	for name, address := range listeners {
		eventually(t, "the new certificate is served", func() bool { return servedName(t, w, address) == "successor of "+name })
	}
}

// Each certificate that can end has its role in the metrics, with the end of the
// first of that role.
func TestExpiryOfEachRole(t *testing.T) {
	w := newWorld(t)
	ends := func(hours int) time.Time {
		return time.Now().Truncate(time.Second).Add(time.Duration(hours) * time.Hour)
	}
	expected := map[string]time.Time{}
	own := []net.IP{net.IPv4(127, 0, 0, 1)}
	expected["serving"] = ends(1)
	w.issue("serving", pki.Subject{CommonName: "dispatcher", IPs: own, NotAfter: expected["serving"]})
	expected["admin_serving"] = ends(2)
	w.issue("admin", pki.Subject{CommonName: "admin", IPs: own, NotAfter: expected["admin_serving"]})
	expected["webhook_client"] = ends(3)
	w.issue("registry/client", pki.Subject{CommonName: "client", NotAfter: expected["webhook_client"]})
	w.issue("registry/later", pki.Subject{CommonName: "client", NotAfter: ends(4)})
	for role, file := range map[string]string{"client_ca": "ca.crt", "admin_client_ca": "operators.crt"} {
		expected[role] = ends(5 + len(role))
		first, err := pki.NewAuthorityUntil("first", expected[role])
		if err != nil {
			t.Fatal(err)
		}
		w.write(file, append(w.authority.PEM, first.PEM...))
	}
	w.configureMore("policy", "- name: other.example.com\n  clientConfig: {url: \"https://127.0.0.1:1/\"}\n  sideEffects: None\n  admissionReviewVersions: [v1]\n"+
		"- name: others.example.com\n  clientConfig: {url: \"https://127.0.0.1:9/\"}\n  sideEffects: None\n  admissionReviewVersions: [v1]\n"+
		"- name: none.example.com\n  clientConfig: {url: \"https://127.0.0.1:2/\"}\n  sideEffects: None\n  admissionReviewVersions: [v1]\n") // to which no certificate is shown
	for name, webhook := range map[string]string{"client": "policy/policy*", "later": "policy/other*"} {
		w.write("registry/"+name+".yaml", []byte("apiVersion: dispatcher.dev/v1alpha1\nkind: WebhookBinding\nmetadata: {name: "+name+"}\n"+
			"spec: {webhooks: [\""+webhook+"\"], clientCertificate: {certFile: "+name+".crt, keyFile: "+name+".key}}\n"))
	}
	p := w.startFrom(strings.Replace(fileConfig, `admin: {listen: "127.0.0.1:0"}`,
		`admin: {listen: "127.0.0.1:0", tls: {certFile: admin.crt, keyFile: admin.key, clientCAFile: operators.crt}}`, 1) + "lameDuck: 0s\n")
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
	found := map[string]time.Time{}
	for _, m := range regexp.MustCompile(`dispatcher_certificate_expiry_timestamp_seconds\{role="(\w+)"\} (\S+)`).FindAllStringSubmatch(string(page), -1) {
		seconds, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		found[m[1]] = time.Unix(int64(seconds), 0)
	}
	if d := diff.Diff(expected, found); d != "" {
		t.Errorf("ends by role (-want +got):\n%s", d)
	}
}
