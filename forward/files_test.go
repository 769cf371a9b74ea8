// SPDX-License-Identifier: Apache-2.0

package forward_test

import (
	"crypto/tls"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/forward"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

func (w *world) write(name string, data []byte) {
	w.t.Helper()
	if err := os.WriteFile(w.path(name), data, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) issue(name string, s pki.Subject) tls.Certificate {
	w.t.Helper()
	pair, err := w.authority.Issue(s)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := pair.Write(w.dir, name); err != nil {
		w.t.Fatal(err)
	}
	made, err := pair.TLS()
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// F45: a renewed certificate is the one of the next call, on a connection of its own; a file
// that is broken meanwhile changes nothing.
func TestRenewal(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("{}")) })
	w.start()
	as := func(want string) {
		t.Helper()
		if got := w.call(path0, nil); got.status != http.StatusOK {
			t.Fatalf("%+v", got)
		}
		if all := w.got(); all[len(all)-1].cluster != want {
			t.Errorf("called as %q, want %q", all[len(all)-1].cluster, want)
		}
	}
	as("east")
	w.write("east.crt", []byte("-----BEGIN CERTIFICATE-----\n"))
	w.forwarder.Refresh()
	as("east")
	if _, text := w.admin("/metrics"); !strings.Contains(text, "dispatcher_forward_certificate_failures_total 1") {
		t.Error("the refused files are not counted")
	}
	w.issue("east", pki.Subject{CommonName: "east-renewed"})
	w.forwarder.Refresh()
	as("east-renewed")

	until := time.Now().Add(90 * time.Minute).Truncate(time.Second)
	w.issue("service", pki.Subject{CommonName: "service", DNSNames: []string{"forwarder.admission.svc"}, NotAfter: until})
	w.forwarder.Refresh()
	w.client.CloseIdleConnections()
	var shown time.Time
	w.client.Transport.(*http.Transport).TLSClientConfig.VerifyConnection = func(s tls.ConnectionState) error {
		shown = s.PeerCertificates[0].NotAfter
		return nil
	}
	as("east-renewed")
	if !shown.Equal(until) {
		t.Errorf("the serving certificate that is shown ends at %v, want %v", shown, until)
	}
}

// Bad files and settings are refused at the start, with their names.
func TestSettingsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world, *forward.Settings)
		want   string
	}{
		"no URL":              {func(_ *world, s *forward.Settings) { s.URL = nil }, "https://HOST"},
		"plain HTTP":          {func(_ *world, s *forward.Settings) { s.URL.Scheme = "http" }, "https://HOST"},
		"a path":              {func(_ *world, s *forward.Settings) { s.URL.Path = "/v1" }, "without"},
		"a query":             {func(_ *world, s *forward.Settings) { s.URL.RawQuery = "a=b" }, "no user, path, query"},
		"a negative limit":    {func(_ *world, s *forward.Settings) { s.Requests = -1 }, "negative"},
		"a missing file":      {func(w *world, s *forward.Settings) { s.Files.ClientKey = w.path("missing") }, "missing: no such file"},
		"keys of another one": {func(w *world, s *forward.Settings) { s.Files.ClientKey = w.path("service.key") }, "east.crt with"},
		"a CA that is none":   {func(w *world, s *forward.Settings) { s.Files.CA = w.path("east.key") }, "holds no PEM certificate"},
		"a busy address":      {func(w *world, s *forward.Settings) { s.AdminListen = w.server.Listener.Addr().String() }, "address already in use"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
			s := w.settings
			c.change(w, &s)
			f, err := forward.New(s)
			if err == nil {
				t.Fatal("it is taken", f.Address())
			}
			if want := strings.TrimPrefix(c.want, "without"); !strings.Contains(err.Error(), want) {
				t.Errorf("error %q, want %q", err, want)
			}
		})
	}
}

// Readiness is about what the forwarder itself has.
func TestReadiness(t *testing.T) {
	w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	w.start()
	w.server.Close()
	if status, text := w.admin("/readyz"); status != http.StatusOK {
		t.Errorf("with the dispatcher gone: %d %s", status, text)
	}
	for _, c := range []struct{ name, want string }{{"east", "client certificate"}, {"service", "serving certificate"}} {
		w.issue(c.name, pki.Subject{CommonName: c.name, DNSNames: []string{"forwarder.admission.svc"}, NotAfter: time.Now().Add(-time.Minute)})
		w.forwarder.Refresh()
		if status, text := w.admin("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(text, c.want) {
			t.Errorf("%s expired: %d %s", c.name, status, text)
		}
	}
	if status, _ := w.admin("/livez"); status != http.StatusOK {
		t.Errorf("livez: %d", status)
	}
}
