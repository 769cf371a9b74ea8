// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// apiHome is the manifests of a cluster with an API, and what they name.
type apiHome struct{ *home }

func newAPIHome(t *testing.T) apiHome {
	h := apiHome{newHome(t)}
	h.reader = manifest.Reader{Sources: manifest.Directories(h.path("registry")), FileRoots: []string{h.path("access")}}
	h.put("registry/cluster.yaml", `apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec: {authentication: {certificate: {commonNames: [east]}}, kubeconfigFile: ../access/kubeconfig}
`)
	h.kubeconfig("https://api.example.com:6443/k8s", "tokenFile: token")
	h.put("access/token", "first\n")
	return h
}

func (h apiHome) kubeconfig(server, user string) {
	h.Helper()
	h.put("access/kubeconfig", fmt.Sprintf(`current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: %q, tls-server-name: kubernetes}}]
users: [{name: a, user: {%s}}]
`, server, user))
}

// access returns the access that the kubeconfig describes, and the input's name.
func (h apiHome) access() (manifest.KubeAccess, string) {
	h.Helper()
	in := h.good()
	access, err := in.Access(&in.Objects.Clusters[0])
	if err != nil {
		h.Fatal(err)
	}
	return access, in.Hash
}

// TestE18Access is what a kubeconfig describes. A token that is renewed, in its file or
// in the kubeconfig, is neither a new input nor another access, and the next request
// has it.
func TestE18Access(t *testing.T) {
	h := newAPIHome(t)
	access, first := h.access()
	want := manifest.KubeAccess{Server: "https://api.example.com:6443/k8s", ServerName: "kubernetes"}
	want.Credential.TokenFile = h.path("access/token")
	want.Credential.Roots = h.path("registry") + string(filepath.ListSeparator) + h.path("access")
	if diff := cmp.Diff(want, access); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	credentials := manifest.NewCredentials(access)
	for i := range 1000 {
		token := fmt.Sprintf("renewed-%04d", i)
		h.put("access/token", token)
		if now, hash := h.access(); now != access || hash != first {
			t.Fatalf("token %d is a new input", i)
		}
		if got, err := credentials.Current(); err != nil || got.Token != token {
			t.Fatalf("the credential is %q, %v", got.Token, err)
		}
	}
	if printed := fmt.Sprintf("%v %+v %#v", access, access, access); strings.Contains(printed, "renewed") {
		t.Errorf("what is printed holds the token: %s", printed)
	}
}

// TestHeldCredential is a token that stands in the kubeconfig itself. One for
// another server waits for the Snapshot that names the server.
func TestHeldCredential(t *testing.T) {
	h := newAPIHome(t)
	h.kubeconfig("https://api.example.com", "token: first")
	access, first := h.access()
	credentials := manifest.NewCredentials(access)
	expect := func(when, token string, good bool) {
		t.Helper()
		if got, err := credentials.Current(); got.Token != token || (err == nil) != good {
			t.Errorf("%s: %q, %v", when, got.Token, err)
		}
	}
	expect("at first", "first", true)
	h.kubeconfig("https://api.example.com", "token: second")
	if now, hash := h.access(); now != access || hash != first {
		t.Error("a renewed token is a new input")
	}
	expect("renewed", "second", true)
	h.put("access/kubeconfig", "junk")
	expect("half written", "second", false)
	h.kubeconfig("https://elsewhere.example.com", "token: third")
	expect("for another server", "second", false)
	there, hash := h.access()
	if hash == first || there.Server != "https://elsewhere.example.com" {
		t.Error("another server is no new input")
	}
	if got, err := manifest.NewCredentials(there).Current(); err != nil || got.Token != "third" {
		t.Errorf("there: %q, %v", got.Token, err)
	}
}

// TestAccessPrecedence: as in client-go, a file of a token goes before a token, and what
// is held before what is named.
func TestAccessPrecedence(t *testing.T) {
	h := newAPIHome(t)
	for user, want := range map[string]manifest.CredentialSource{
		"token: inline, tokenFile: token":      {TokenFile: h.path("access/token")},
		"token: inline":                        {Kubeconfig: h.path("access/kubeconfig")},
		"client-certificate: c, client-key: k": {CertificateFile: h.path("access/c"), KeyFile: h.path("access/k")},
		"client-certificate-data: YQ==, client-certificate: c, client-key: k": {Kubeconfig: h.path("access/kubeconfig"), KeyFile: h.path("access/k")},
		"client-certificate: c, client-key-data: YQ==, client-key: k":         {Kubeconfig: h.path("access/kubeconfig"), CertificateFile: h.path("access/c")},
	} {
		h.kubeconfig("https://api.example.com", user)
		access, _ := h.access()
		got := access.Credential
		want.Roots = got.Roots
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", user, diff)
		}
	}
}

// TestBrokenKubeconfig: each thing that is wrong with a kubeconfig is reported as it
// comes, as a new input, though what counts of the file is what it says.
func TestBrokenKubeconfig(t *testing.T) {
	h := newAPIHome(t)
	known := map[string]bool{}
	for _, c := range []struct{ server, user, reason string }{
		{"http://api.example.com", "token: a", "must be an https URL"},
		{"https://api.example.com", "exec: {}", "user.exec is not supported"},
		{"https://api.example.com", "token: a, as: b", "user.as is not supported"},
	} {
		h.kubeconfig(c.server, c.user)
		in := h.good()
		if _, err := in.Access(&in.Objects.Clusters[0]); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%v, want %q", err, c.reason)
		}
		if known[in.Hash] {
			t.Errorf("%s is no new input", c.reason)
		}
		known[in.Hash] = true
	}
}

// clientCertificate returns a certificate until a time, and its key.
func (h apiHome) clientCertificate(name string, until time.Time) pki.Pair {
	h.Helper()
	authority, err := pki.NewAuthorityUntil(name, until)
	h.must(err)
	pair, err := authority.Own()
	h.must(err)
	return pair
}

// TestE18BrokenFiles: while a file of the credential is gone, empty or expired, the last
// good one is used, and the error says which file it is and shows nothing of it.
func TestE18BrokenFiles(t *testing.T) {
	h := newAPIHome(t)
	expired := h.clientCertificate("expired", time.Now().Add(-time.Hour))
	good := h.clientCertificate("good", time.Now().Add(time.Hour))
	h.kubeconfig("https://api.example.com", "client-certificate: client.crt, client-key: client.key, tokenFile: token")
	h.put("access/client.crt", string(good.Certificate))
	h.put("access/client.key", string(good.Key))
	access, _ := h.access()
	credentials := manifest.NewCredentials(access)
	current := func() (string, error) {
		c, err := credentials.Current()
		if c.Certificate == nil {
			return c.Token, err
		}
		return c.Token + " " + c.Certificate.Leaf.Subject.CommonName, err
	}
	if got, err := current(); got != "first good" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	for _, tt := range []struct{ file, content, reason string }{
		{"token", "", "tokenFile: is empty"},
		{"token", "two words", "tokenFile: must hold one token of printable ASCII"},
		{"client.crt", string(expired.Certificate), "client-certificate: private key does not match public key"},
		{"client.key", string(expired.Key), "client-certificate: private key does not match public key"},
		{"client.crt", "gone", "client-certificate: cannot be read: no such file or directory"},
		{"token", "gone", "tokenFile: cannot be read: no such file or directory"},
	} {
		whole, err := os.ReadFile(h.path("access/" + tt.file))
		if err != nil {
			t.Fatal(err)
		}
		h.put("access/"+tt.file, tt.content)
		if tt.content == "gone" {
			if err := os.Remove(h.path("access/" + tt.file)); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := current(); got != "first good" || err == nil || err.Error() != tt.reason {
			t.Errorf("%s %.9q: %q, %v; want %s", tt.file, tt.content, got, err, tt.reason)
		}
		h.put("access/"+tt.file, string(whole))
		if got, err := current(); got != "first good" || err != nil {
			t.Errorf("%s is good again: %q, %v", tt.file, got, err)
		}
	}
	h.put("access/client.crt", string(expired.Certificate))
	h.put("access/client.key", string(expired.Key))
	if got, err := current(); got != "first good" || err == nil || !strings.Contains(err.Error(), "has expired at") {
		t.Errorf("expired: %q, %v", got, err)
	}
}
