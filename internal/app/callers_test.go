// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

// extensions are callers of the cluster east, each known by another kind of credential.
const extensions = `authentication:
  certificate: {commonNames: [east]}
  callers:
  - {name: by-name, certificate: {commonNames: [metrics]}, apiGroups: [metrics.example.io, custom.example.io]}
  - {name: by-dns, certificate: {dnsNames: [wardle.example.com]}, apiGroups: [wardle.example.io]}
  - {name: by-uri, certificate: {uris: ["spiffe://example.com/wardle"]}, apiGroups: [wardle.example.io]}
  - {name: by-authority, certificate: {commonNames: [pinned], caFile: own.pem}, apiGroups: [pinned.example.io]}
  - {name: by-token, bearerTokenSHA256: ["%x"], apiGroups: [tokens.example.io]}
`

// An extension API server is served for its own API groups, within its cluster, and for
// no others; whatever it asks otherwise, no webhook is called.
func TestCallers(t *testing.T) {
	r := newRig(t)
	r.cluster("east", fmt.Sprintf(extensions, sha256.Sum256([]byte("a-token"))))
	r.cluster("west", "")
	r.configure("tls: {clientAuth: IfGiven}\ntelemetry: {decisionLog: {file: decisions, allows: true}}")
	own := must(pki.NewAuthority("test")) // of the same name as the process's
	r.write("registry/own.pem", own.PEM)
	pair := must(own.Issue(pki.Subject{CommonName: "pinned"}))
	r.write("pinned.crt", pair.Certificate)
	r.write("pinned.key", pair.Key)
	for name, subject := range map[string]pki.Subject{
		"east": {CommonName: "east"}, "metrics": {CommonName: "metrics"},
		"dns": {DNSNames: []string{"wardle.example.com"}}, "uri": {URIs: []string{"spiffe://example.com/wardle"}},
		"both": {CommonName: "east", DNSNames: []string{"wardle.example.com"}}, "forged": {CommonName: "pinned"},
	} {
		r.issue(name, subject)
	}
	r.start()
	about := func(group, requested string) []byte {
		q := question{group: group, resource: "things"}.review()
		return []byte(strings.Replace(q, `"operation"`, `"requestKind":{"group":"`+requested+`","version":"v1","kind":"Thing"},"requestResource":{"group":"`+requested+`","version":"v1","resource":"things"},"operation"`, 1))
	}
	const requested = `"requestResource":{"group":"apps","version":"v1","resource":"deployments"},`
	alone := []byte(strings.Replace(question{group: "metrics.example.io"}.review(), `"operation"`, requested+`"operation"`, 1))
	for _, c := range []struct {
		name, as, token string
		body            []byte
		caller          string // in the decision log, where it is served
		want            int
	}{
		{"A22 its own group", "metrics", "", about("metrics.example.io", "metrics.example.io"), "by-name", http.StatusOK},
		{"A22 its second group, without a requestResource", "metrics", "", []byte(question{group: "custom.example.io"}.review()), "by-name", http.StatusOK},
		{"A22 by DNS name", "dns", "", about("wardle.example.io", "wardle.example.io"), "by-dns", http.StatusOK},
		{"A22 by URI", "uri", "", about("wardle.example.io", "wardle.example.io"), "by-uri", http.StatusOK},
		{"A22 by its own authority", "pinned", "", about("pinned.example.io", "pinned.example.io"), "by-authority", http.StatusOK},
		{"A22 by token", "", "a-token", about("tokens.example.io", "tokens.example.io"), "by-token", http.StatusOK},
		{"A22 the kube-apiserver, any group", "east", "", about("metrics.example.io", "apps"), "", http.StatusOK},
		{"A22 another group", "metrics", "", about("apps", "apps"), "", http.StatusForbidden},
		{"A22 the core group", "metrics", "", []byte(question{}.review()), "", http.StatusForbidden},
		{"A22 a group of another caller", "metrics", "", about("wardle.example.io", "wardle.example.io"), "", http.StatusForbidden},
		{"A22 asked for as another group", "metrics", "", about("metrics.example.io", "apps"), "", http.StatusForbidden},
		{"A22 asked for as its own, sent as another", "metrics", "", about("apps", "metrics.example.io"), "", http.StatusForbidden},
		{"A22 asked for as another group, without a requestKind", "metrics", "", alone, "", http.StatusForbidden},
		{"A22 another group, by token", "", "a-token", about("apps", "apps"), "", http.StatusForbidden},
		{"A22 the kube-apiserver's certificate and a caller's token", "east", "a-token", about("tokens.example.io", "tokens.example.io"), "", http.StatusForbidden},
		{"A22 names of two of the cluster's API servers", "both", "", about("wardle.example.io", "wardle.example.io"), "", http.StatusForbidden},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(r.calls("policy"))
			client := r.clientAs(c.as)
			defer client.CloseIdleConnections()
			got := r.ask(question{client: client, token: c.token, body: c.body})
			if got.status != c.want || got.err != nil {
				t.Errorf("HTTP status %d, want %d: %s, %v", got.status, c.want, got.text, got.err)
			}
			if calls := len(r.calls("policy")) - before; (calls == 1) != (c.want == http.StatusOK) {
				t.Errorf("%d calls of the webhook", calls)
			}
		})
	}
	t.Run("A22 another cluster's path", func(t *testing.T) {
		if got := r.ask(question{cluster: "west", client: r.clientAs("metrics"), body: about("metrics.example.io", "metrics.example.io")}); got.status != http.StatusForbidden {
			t.Errorf("HTTP status %d: %s", got.status, got.text)
		}
	})
	t.Run("A22 a pinned name of another authority", func(t *testing.T) {
		if got := r.ask(question{client: r.clientAs("forged"), body: about("pinned.example.io", "pinned.example.io")}); got.status == http.StatusOK {
			t.Errorf("it is served: %s", got.text)
		}
	})
	if _, text := r.admin("/metrics"); !strings.Contains(text, `dispatcher_refusals_total{cluster="east",reason="other_group"} 7`) {
		t.Error("the refusals are not counted for the cluster")
	}
	if !r.logged(`"caller":"by-name"`) {
		t.Error("the log does not name the caller that is refused")
	}
	r.process.end()
	decisions := string(must(os.ReadFile(filepath.Join(r.dir, "decisions"))))
	for _, caller := range []string{"by-name", "by-dns", "by-uri", "by-authority", "by-token"} {
		if !strings.Contains(decisions, `"cluster":"east","caller":"`+caller+`"`) {
			t.Errorf("the decision log has no line of %s", caller)
		}
	}
	if lines := strings.Count(decisions, "\n"); lines != 7 || strings.Count(decisions, `"caller"`) != 6 {
		t.Errorf("%d lines, want 7 of which 6 name a caller:\n%s", lines, decisions)
	}
}

// A caller has no share of its own: while it uses up what its cluster may have under way, the
// kube-apiserver's next admission is shed, and another cluster's is not.
func TestCallersShareTheirCluster(t *testing.T) {
	r := newRig(t)
	r.cluster("east", `authentication: {certificate: {commonNames: [east]}, callers: [{name: metrics, certificate: {commonNames: [metrics]}, apiGroups: [metrics.example.io]}]}`)
	r.cluster("west", "")
	r.issue("metrics", pki.Subject{CommonName: "metrics"})
	r.configure("limits: {admissionsPerCluster: 1}")
	r.play((*call).hang)
	r.start()
	t.Run("A22 the share of the cluster", func(*testing.T) {
		r.asks(question{client: r.clientAs("metrics"), body: []byte(question{group: "metrics.example.io"}.review())})
		r.eventually("a call of the caller is under way", func() bool { return len(r.calls("policy")) > 0 })
		r.denies(question{timeout: "2s"}, "overloaded")
		r.play((*call).deny)
		r.denies(question{cluster: "west"}, "says policy")
	})
}
