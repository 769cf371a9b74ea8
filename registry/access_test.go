// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/registry"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// apiHome is the manifests of a cluster with an API, and what they name.
type apiHome struct {
	*testing.T
	dir   string
	given []manifest.KubeAccess
	asked [][]string // labels
	*registry.Registry
}

func newAPIHome(t *testing.T) *apiHome {
	h := &apiHome{T: t, dir: t.TempDir()}
	h.put("registry/cluster.yaml", `apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec: {authentication: {certificate: {commonNames: [east]}}, kubeconfigFile: ../access/kubeconfig}
`)
	h.kubeconfig("https://api.example.com:6443/k8s", "tokenFile: token")
	h.put("access/token", "first\n")
	h.Registry = registry.New(registry.Settings{
		Directories: []string{h.path("registry")},
		FileRoots:   []string{h.path("access")},
		Compile: compile.Options{Namespaces: func(_ string, access manifest.KubeAccess, labels []string) chain.NamespaceSource {
			h.given = append(h.given, access)
			h.asked = append(h.asked, labels)
			return source{"east", func(string) {}}
		}},
	})
	return h
}

func (h *apiHome) path(name string) string { return filepath.Join(h.dir, name) }

func (h *apiHome) put(name, content string) {
	h.Helper()
	path := h.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		h.Fatal(err)
	}
}

func (h *apiHome) kubeconfig(server, user string) {
	h.Helper()
	h.put("access/kubeconfig", fmt.Sprintf(`current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: %q, tls-server-name: kubernetes}}]
users: [{name: a, user: {%s}}]
`, server, user))
}

func (h *apiHome) load() *registry.Snapshot {
	h.Helper()
	if problems := h.Load(); len(problems) > 0 {
		h.Fatal(problems)
	}
	return h.Snapshot()
}

// TestE18Access is what the source of a cluster's namespaces is given. A token that
// is renewed, in its file or in the kubeconfig, is neither a new Snapshot nor
// another access, and the next request has it.
func TestE18Access(t *testing.T) {
	h := newAPIHome(t)
	first := h.load()
	want := manifest.KubeAccess{Server: "https://api.example.com:6443/k8s", ServerName: "kubernetes"}
	want.Credential.TokenFile = h.path("access/token")
	want.Credential.Roots = h.path("registry") + string(filepath.ListSeparator) + h.path("access")
	if diff := cmp.Diff([]manifest.KubeAccess{want}, h.given); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	credentials := manifest.NewCredentials(h.given[0])
	for i := range 1000 {
		token := fmt.Sprintf("renewed-%04d", i)
		h.put("access/token", token)
		if h.load() != first {
			t.Fatalf("token %d is a new Snapshot", i)
		}
		if got, err := credentials.Current(); err != nil || got.Token != token {
			t.Fatalf("the credential is %q, %v", got.Token, err)
		}
	}
	if len(h.given) != 1 {
		t.Errorf("given %d times", len(h.given))
	}
	if printed := fmt.Sprintf("%v %+v %#v", h.given, h.given, h.given); strings.Contains(printed, "renewed") {
		t.Errorf("what is printed holds the token: %s", printed)
	}
}

// TestHeldCredential is a token that stands in the kubeconfig itself. One for
// another server waits for the Snapshot that names the server.
func TestHeldCredential(t *testing.T) {
	h := newAPIHome(t)
	h.kubeconfig("https://api.example.com", "token: first")
	first := h.load()
	credentials := manifest.NewCredentials(h.given[0])
	expect := func(when, token string, good bool) {
		t.Helper()
		if got, err := credentials.Current(); got.Token != token || (err == nil) != good {
			t.Errorf("%s: %q, %v", when, got.Token, err)
		}
	}
	expect("at first", "first", true)
	h.kubeconfig("https://api.example.com", "token: second")
	if h.load() != first {
		t.Error("a renewed token is a new Snapshot")
	}
	expect("renewed", "second", true)
	h.put("access/kubeconfig", "junk")
	expect("half written", "second", false)
	h.kubeconfig("https://elsewhere.example.com", "token: third")
	expect("for another server", "second", false)
	if h.load() == first || h.given[len(h.given)-1].Server != "https://elsewhere.example.com" {
		t.Error("another server is no new Snapshot")
	}
	if got, err := manifest.NewCredentials(h.given[len(h.given)-1]).Current(); err != nil || got.Token != "third" {
		t.Errorf("there: %q, %v", got.Token, err)
	}
}

// TestAccessPrecedence: as in client-go, a file of a token goes before a token, and what
// is held before what is named.
func TestAccessPrecedence(t *testing.T) {
	h := newAPIHome(t)
	for user, want := range map[string]manifest.CredentialSource{
		"token: inline, tokenFile: token": {TokenFile: h.path("access/token")},
		"token: inline":                   {Kubeconfig: h.path("access/kubeconfig")},
		"client-certificate-data: YQ==, client-certificate: c, client-key: k": {Kubeconfig: h.path("access/kubeconfig"), KeyFile: h.path("access/k")},
		"client-certificate: c, client-key-data: YQ==, client-key: k":         {Kubeconfig: h.path("access/kubeconfig"), CertificateFile: h.path("access/c")},
	} {
		h.kubeconfig("https://api.example.com", user)
		h.load()
		got := h.given[len(h.given)-1].Credential
		want.Roots = got.Roots
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", user, diff)
		}
	}
}

// TestBrokenKubeconfig: each thing that is wrong with a kubeconfig is reported as it
// comes, though what counts of the file is what it says.
func TestBrokenKubeconfig(t *testing.T) {
	h := newAPIHome(t)
	h.load()
	for _, c := range []struct{ server, user, reason string }{
		{"http://api.example.com", "token: a", "must be an https URL"},
		{"https://api.example.com", "exec: {}", "user.exec is not supported"},
		{"https://api.example.com", "token: a, as: b", "user.as is not supported"},
	} {
		h.kubeconfig(c.server, c.user)
		if problems := h.Load(); len(problems) != 1 || !strings.Contains(problems[0].Reason, c.reason) {
			t.Errorf("problems %v, want %q", problems, c.reason)
		}
	}
}

// TestE18BrokenFiles: while a file of the credential is gone, empty or expired, the last
// good one is used, and the error says which file it is and shows nothing of it.
func TestE18BrokenFiles(t *testing.T) {
	h := newAPIHome(t)
	expired := newAuthority(t, "expired", time.Now().Add(-time.Hour))
	good := newAuthority(t, "good", time.Now().Add(time.Hour))
	h.kubeconfig("https://api.example.com", "client-certificate: client.crt, client-key: client.key, tokenFile: token")
	h.put("access/client.crt", good.pem())
	h.put("access/client.key", good.keyPEM())
	h.load()
	credentials := manifest.NewCredentials(h.given[0])
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
		{"client.crt", expired.pem(), "client-certificate: private key does not match public key"},
		{"client.key", expired.keyPEM(), "client-certificate: private key does not match public key"},
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
	h.put("access/client.crt", expired.pem())
	h.put("access/client.key", expired.keyPEM())
	if got, err := current(); got != "first good" || err == nil || !strings.Contains(err.Error(), "has expired at") {
		t.Errorf("expired: %q, %v", got, err)
	}
}

// TestSelectedLabels is what is kept of namespaces: what selectors name, also that
// of a previous version which still serves.
func TestSelectedLabels(t *testing.T) {
	h := newAPIHome(t)
	webhook := func(resource, key string) {
		h.put("registry/webhook.yaml", fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: policies}
webhooks:
- name: tiers.example.com
  clientConfig: {url: "https://hook.example.com/"}
  sideEffects: None
  admissionReviewVersions: [v1]
  rules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [%s]}]
  namespaceSelector: {matchExpressions: [{key: %s, operator: Exists}, {key: kubernetes.io/metadata.name, operator: Exists}]}
`, resource, key))
		h.load()
	}
	webhook("pods", "tier")
	webhook("namespaces", "team") // asked about those that are deleted
	webhook("namespaces", "other")
	want := [][]string{{"tier"}, {"team", "tier"}, {"other", "team"}}
	if diff := cmp.Diff(want, h.asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestVersions is which clusters send auth reviews.
func TestVersions(t *testing.T) {
	for text, exempt := range map[string]bool{
		"1.37": true, "v1.37.0": true, "v1.40.2-eks-1": true, "2.0": true,
		"1.36": false, "v1.36.3": false, "v1.9.11+abc": false, "": false,
	} {
		h := newAPIHome(t)
		h.put("registry/cluster.yaml", fmt.Sprintf(`apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec: {authentication: {certificate: {commonNames: [east]}}, kubernetesVersion: %q}
`, text))
		if got := h.load().Clusters["east"].ExemptsAuthReviews(); got != exempt {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// versioned is a source that knows a version.
type versioned struct {
	match.Namespaces
	is chain.KubernetesVersion
}

func (v *versioned) KubernetesVersion() chain.KubernetesVersion { return v.is }

// TestVersionOfTheAPI: what the cluster says counts where the manifest says nothing.
func TestVersionOfTheAPI(t *testing.T) {
	source := &versioned{}
	c := chain.Cluster{Namespaces: source}
	if c.ExemptsAuthReviews() {
		t.Error("exempt without a version")
	}
	if source.is = (chain.KubernetesVersion{Major: 1, Minor: 37}); !c.ExemptsAuthReviews() {
		t.Error("not exempt at 1.37")
	}
	if source.is.Minor = 36; c.ExemptsAuthReviews() {
		t.Error("exempt at 1.36")
	}
}
