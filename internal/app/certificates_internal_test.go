// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

// files is the files of a listener of a test.
type files struct {
	t   *testing.T
	dir string
	config.TLS
}

func newFiles(t *testing.T) *files {
	t.Helper()
	f := &files{t: t, dir: t.TempDir()}
	at := func(name string) string { return filepath.Join(f.dir, name) }
	f.TLS = config.TLS{CertFile: at("serving.crt"), KeyFile: at("serving.key"), ClientCAFile: at("ca.crt")}
	f.serve(time.Now().Add(time.Hour))
	f.trust(f.authority("one", time.Now().Add(time.Hour)))
	return f
}

func (f *files) authority(name string, until time.Time) *pki.Authority {
	f.t.Helper()
	a, err := pki.NewAuthorityUntil(name, until)
	if err != nil {
		f.t.Fatal(err)
	}
	return a
}

func (f *files) write(path string, data []byte) {
	f.t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// serve writes a pair until a time.
func (f *files) serve(until time.Time) {
	f.t.Helper()
	pair, err := f.authority("serving", until).Own()
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(f.CertFile, pair.Certificate)
	f.write(f.KeyFile, pair.Key)
}

// trust writes authorities of clients.
func (f *files) trust(authorities ...*pki.Authority) {
	f.t.Helper()
	var all []byte
	for _, a := range authorities {
		all = append(all, a.PEM...)
	}
	f.write(f.ClientCAFile, all)
}

// Each file that cannot be read or used is named by its field, once.
func TestUnusableFiles(t *testing.T) {
	for name, change := range map[string]func(f *files) string{
		"certificate": func(f *files) string {
			f.write(f.CertFile, nil)
			return "tls.certFile " + f.CertFile + ": holds no PEM certificate"
		},
		"key": func(f *files) string {
			f.write(f.KeyFile, nil)
			return "tls.certFile " + f.CertFile + " with tls.keyFile " + f.KeyFile + ": "
		},
		"authorities": func(f *files) string {
			f.write(f.ClientCAFile, nil)
			return "tls.clientCAFile " + f.ClientCAFile + ": holds no PEM certificate"
		},
		"no certificate": func(f *files) string {
			f.CertFile += "x"
			return "tls.certFile " + f.CertFile + ": no such file or directory"
		},
		"no key": func(f *files) string {
			f.KeyFile += "x"
			return "tls.keyFile " + f.KeyFile + ": no such file or directory"
		},
		"no authorities": func(f *files) string {
			f.ClientCAFile += "x"
			return "tls.clientCAFile " + f.ClientCAFile + ": no such file or directory"
		},
		"a directory for a key": func(f *files) string { f.KeyFile = f.dir; return "tls.keyFile " + f.dir + ": is a directory" },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFiles(t)
			want := change(f)
			if _, err := newCertificates(admissionListener, f.TLS, slog.New(slog.DiscardHandler)); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
	if err := cause(fs.ErrClosed); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("an error without a path is %v", err)
	}
}

// Clients need a certificate where there are authorities of clients, unless it is
// asked for alone; the admission listener verifies it itself.
func TestWhoNeedsACertificate(t *testing.T) {
	for _, tt := range []struct {
		name        string
		of          listener
		change      func(*config.TLS)
		auth        tls.ClientAuthType
		pool, trust bool
	}{
		{"admission", admissionListener, func(*config.TLS) {}, tls.RequireAndVerifyClientCert, false, true},
		{"admission, if given", admissionListener, func(c *config.TLS) { c.ClientAuth = config.IfGiven }, tls.VerifyClientCertIfGiven, false, true},
		{"admission, none", admissionListener, func(c *config.TLS) { c.ClientCAFile = "" }, tls.NoClientCert, false, false},
		{"admin", listener{"admin", "admin.tls", "admin_"}, func(c *config.TLS) { c.ClientAuth = config.IfGiven }, tls.VerifyClientCertIfGiven, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFiles(t)
			tt.change(&f.TLS)
			c, err := newCertificates(tt.of, f.TLS, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.config().GetConfigForClient(nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.ClientAuth != tt.auth || (got.ClientCAs != nil) != tt.pool || (c.trusted() != nil) != tt.trust {
				t.Errorf("certificates: %v, a pool: %t, authorities: %t", got.ClientAuth, got.ClientCAs != nil, c.trusted() != nil)
			}
			if want := map[bool]int{true: 1}[tt.pool || tt.trust]; len(c.current.Load().authorities) != want {
				t.Errorf("%d authorities", len(c.current.Load().authorities))
			}
			if tt.pool {
				one := x509.NewCertPool()
				one.AddCert(c.current.Load().authorities[0])
				if !got.ClientCAs.Equal(one) {
					t.Error("the pool is not of the authorities")
				}
			}
		})
	}
}

// What has not changed is not loaded again; what is bad is said once for each reason,
// and the last good ones stay until there are better ones.
func TestRefresh(t *testing.T) {
	f := newFiles(t)
	var log bytes.Buffer
	c, err := newCertificates(admissionListener, f.TLS, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	first := c.current.Load()
	good, err := os.ReadFile(f.CertFile)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(when string, same bool, loaded, refused int, why string) {
		t.Helper()
		c.refresh()
		c.refresh()
		if (c.current.Load() == first) != same {
			t.Errorf("%s: the first ones stay: %t", when, !same)
		}
		if got := [2]int{strings.Count(log.String(), `msg="certificates loaded"`), strings.Count(log.String(), "certificates refused")}; got != [2]int{loaded, refused} {
			t.Errorf("%s: %d loaded and %d refused are logged, want %d and %d", when, got[0], got[1], loaded, refused)
		}
		if got := c.status()[0].Refused; (got != "") != (why != "") || !strings.Contains(got, why) {
			t.Errorf("%s: the status says %q", when, got)
		}
	}
	expect("unchanged", true, 0, 0, "")
	f.write(f.CertFile, []byte("junk"))
	expect("junk", true, 0, 1, "holds no PEM certificate")
	f.write(f.CertFile, good[:len(good)/2])
	expect("half", true, 0, 2, "incomplete PEM block")
	if err := os.Remove(f.CertFile); err != nil {
		t.Fatal(err)
	}
	expect("gone", true, 0, 3, "no such file")
	f.write(f.CertFile, good)
	expect("back", false, 1, 3, "")
	f.serve(time.Now().Add(2 * time.Hour))
	expect("renewed", false, 2, 3, "")
	f.trust(f.authority("two", time.Now().Add(time.Hour)))
	expect("other authorities", false, 3, 3, "")
}

// Of each role the certificate that expires first is told, and the status has all.
func TestExpiriesOfAListener(t *testing.T) {
	at := func(hours int) time.Time {
		return time.Now().Add(time.Duration(hours) * time.Hour).Truncate(time.Second).UTC()
	}
	f := newFiles(t)
	f.serve(at(9))
	f.trust(f.authority("b", at(5)), f.authority("a", at(3)), f.authority("c", at(7)))
	c, err := newCertificates(listener{"admin", "admin.tls", "admin_"}, f.TLS, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	first := map[string]time.Time{}
	c.expiries(first)
	if len(first) != 2 || !first["admin_serving"].Equal(at(9)) || !first["admin_client_ca"].Equal(at(3)) {
		t.Errorf("expiries %v", first)
	}
	first["admin_client_ca"] = at(1) // of another listener
	if c.expiries(first); !first["admin_client_ca"].Equal(at(1)) {
		t.Errorf("expiries %v", first)
	}
	var got []string
	for _, s := range c.status() {
		got = append(got, fmt.Sprintf("%s %s %s %s", s.Role, filepath.Base(s.File), s.Subject, s.NotAfter.Format(time.TimeOnly)))
	}
	want := []string{
		"admin serving serving.crt CN=serving " + at(9).Format(time.TimeOnly),
		"admin client authority ca.crt CN=b " + at(5).Format(time.TimeOnly),
		"admin client authority ca.crt CN=a " + at(3).Format(time.TimeOnly),
		"admin client authority ca.crt CN=c " + at(7).Format(time.TimeOnly),
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("status %q, want %q", got, want)
	}
}

// The names of authorities fill a TLS handshake to the last byte, each of them once
// and behind its length.
func TestNamesFitAHandshake(t *testing.T) {
	f := newFiles(t)
	named := func(length int) *pki.Authority {
		return f.authority(strings.Repeat("x", length), time.Now().Add(time.Hour))
	}
	bytesOf := func(list ...*pki.Authority) int {
		var authorities []*x509.Certificate
		for _, a := range list {
			authorities = append(authorities, a.Certificate)
		}
		return namesBytes(authorities)
	}
	one, other := named(20_000), named(20_001)
	if n := bytesOf(one); n != 2+len(one.Certificate.RawSubject) || bytesOf(one, one) != n || bytesOf(one, other) != 2*n+1 {
		t.Errorf("names take %d, %d and %d bytes", n, bytesOf(one, one), bytesOf(one, other))
	}
	left := maxNamesBytes - bytesOf(one, other) - (bytesOf(one) - 20_000)
	for length, fits := range map[int]bool{left: true, left + 1: false} {
		f.trust(one, other, named(length))
		in, err := readCredentials(listener{"admin", "admin.tls", "admin_"}, f.TLS)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.compile(listener{"admin", "admin.tls", "admin_"}, f.TLS); (err == nil) != fits {
			t.Errorf("the names have %d bytes beyond the limit: %v", length-left, err)
		}
		if _, err := in.compile(admissionListener, f.TLS); err != nil {
			t.Errorf("the admission listener sends no names: %v", err)
		}
	}
}

// Callers get what is configured up to half of the descriptors.
func TestConnectionsAtMost(t *testing.T) {
	half := descriptorLimit() / 2
	if half < 2 {
		t.Skipf("the limit of descriptors is %d", descriptorLimit())
	}
	for configured, want := range map[int]int{1: 1, half - 1: half - 1, half: half, half + 1: half} {
		var log bytes.Buffer
		if got := connections(configured, slog.New(slog.NewTextHandler(&log, nil))); got != want || (log.Len() > 0) != (got != configured) {
			t.Errorf("of %d connections %d are allowed: %s", configured, got, &log)
		}
	}
}

// Why a webhook is pending is a cause that is known, and no word of the webhook.
func TestPendingCause(t *testing.T) {
	for err, want := range map[error]hook.Cause{
		&hook.CallError{Cause: hook.Unreachable}:                        hook.Unreachable,
		fmt.Errorf("a probe: %w", &hook.CallError{Cause: hook.Timeout}): hook.Timeout,
		errors.New("the webhook's own words"):                           hook.BadAnswer,
	} {
		if got := pendingCause(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}
