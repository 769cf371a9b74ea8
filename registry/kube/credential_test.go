// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/match"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// TestE18RenewedToken renews the token a thousand times: each call has the new one,
// and nothing is listed again.
func TestE18RenewedToken(t *testing.T) {
	a := newAPI(t)
	w := newWorld(t)
	s := w.prepare("east", a.access())
	a.mu.Lock()
	a.watches = map[chan metav1.WatchEvent]bool{} // no event: each namespace is asked for
	a.mu.Unlock()
	for i := range 1000 {
		token, name := fmt.Sprintf("token-%04d", i), fmt.Sprint("shop-", i)
		a.put(name, gold())
		a.accept(token)
		a.give(token)
		if again := w.Namespaces("east", a.access(), []string{"tier"}); again != s {
			t.Fatal("a renewed token is another source")
		}
		labels, err := s.LookUpNamespace(name, time.Time{})
		if err != nil || labels["tier"] != "gold" {
			t.Fatalf("with token %d: %v, %v", i, labels, err)
		}
	}
	if lists, gets := a.times("list"), a.times("get"); lists != 1 || gets != 1000 {
		t.Errorf("%d lists, %d GETs", lists, gets)
	}
}

// TestE18BrokenCredential uses the last good token while its file is broken, and says
// so.
func TestE18BrokenCredential(t *testing.T) {
	a := newAPI(t)
	w := newWorld(t)
	s := w.prepare("east", a.access())
	token := filepath.Join(a.dir, "token")
	for name, broken := range map[string]func() error{
		"gone":    func() error { return nil },
		"empty":   func() error { return os.WriteFile(token, nil, 0o600) },
		"outside": func() error { return os.Symlink("/proc/self/environ", token) },
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(token)
			if err := broken(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the status says so", func() bool { return w.Status()[0].Credential != "" })
			eventually(t, "the log says so", func() bool { return w.logged("credential for a cluster's API cannot be read") })
			if line := w.Status()[0].String(); !strings.Contains(line, "credential") || strings.Contains(line, token) {
				t.Errorf("the line reads %q", line)
			}
			a.now("watch", nil)
			a.put("shop-"+name, gold())
			expectTier(t, s, "shop-"+name, "gold")
			_ = os.Remove(token)
			a.give("of-the-dispatcher")
			eventually(t, "the status takes it back", func() bool { return w.Status()[0].Credential == "" })
		})
	}
}

// TestNoCredentialYet asks nobody without one, and goes on once it is there.
func TestNoCredentialYet(t *testing.T) {
	a := newAPI(t)
	a.put("shop", gold())
	token := filepath.Join(a.dir, "token")
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	s := w.prepare("east", a.access())
	expectError(t, s, "shop", "could not be asked")
	if n := a.times("list") + a.times("get"); n != 0 {
		t.Errorf("%d requests without a credential", n)
	}
	eventually(t, "the status", func() bool { return strings.HasSuffix(w.Status()[0].String(), "the credential cannot be read") })
	a.give("of-the-dispatcher")
	expectTier(t, s, "shop", "gold")
}

// TestRenewedCertificate presents the certificate that the files hold now, on a
// connection of its own.
func TestRenewedCertificate(t *testing.T) {
	a := newAPI(t)
	var presented sync.Map // by the path of the request
	a.now("get", func(w http.ResponseWriter, r *http.Request) {
		name := "none"
		if len(r.TLS.PeerCertificates) > 0 {
			name = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		presented.Store(path.Base(r.URL.Path), name)
		fails(http.StatusNotFound, metav1.StatusReasonNotFound)(w, r)
	})
	access := a.access()
	access.Credential.CertificateFile = filepath.Join(a.dir, "client.crt")
	access.Credential.KeyFile = filepath.Join(a.dir, "client.key")
	writePair(t, access.Credential, "first", time.Now().Add(time.Hour))
	s := newWorld(t).prepare("east", access)
	asked := 0
	presents := func(want string) { // in the first request that is answered in time
		t.Helper()
		for {
			asked++
			name := fmt.Sprint("mars-", asked)
			_, err := s.LookUpNamespace(name, time.Time{})
			if err != nil && strings.HasSuffix(err.Error(), "did not answer in time") {
				continue
			}
			if !errors.Is(err, match.ErrNoNamespace) {
				t.Fatal(err)
			}
			if got, _ := presented.Load(name); got != want {
				t.Errorf("presented is %s, want %s", got, want)
			}
			return
		}
	}
	for _, name := range []string{"first", "second"} {
		writePair(t, access.Credential, name, time.Now().Add(time.Hour))
		presents(name)
	}
	writePair(t, access.Credential, "expired", time.Now().Add(-time.Hour))
	presents("second")
	if n := a.times("list"); n != 1 {
		t.Errorf("%d lists", n)
	}
}

// writePair writes a client's key pair.
func writePair(t *testing.T, at manifest.CredentialSource, name string, until time.Time) {
	t.Helper()
	authority, err := pki.NewAuthority("clients")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(pki.Subject{CommonName: name, NotAfter: until})
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{at.CertificateFile: pair.Certificate, at.KeyFile: pair.Key} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
