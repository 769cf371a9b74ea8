// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
)

// signer is the key by which an API server signs tokens.
type signer struct{ key *ecdsa.PrivateKey }

func newSigner() signer { return signer{must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))} }

func (s signer) keySet() []byte {
	point := must(s.key.PublicKey.Bytes())
	encode := base64.RawURLEncoding.EncodeToString
	return fmt.Appendf(nil, `{"keys":[{"kty":"EC","kid":"k","crv":"P-256","x":%q,"y":%q}]}`, encode(point[1:33]), encode(point[33:]))
}

// token is one of KEP-6060 for a subject, for an hour from at on.
func (s signer) token(subject string, at time.Time, groups ...string) string {
	token := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
		"iss": "https://east.example.com", "sub": subject, "aud": "https://dispatcher/v1/clusters/east/validate",
		"iat": at.Unix(), "exp": at.Add(time.Hour).Unix(),
		"kubernetes.io": map[string]any{"attestations": map[string]any{"admissionReviewAPIGroups": groups}},
	})
	token.Header["kid"] = "k"
	return must(token.SignedString(s.key))
}

const issued = `authentication:
  certificate: {commonNames: [east]}
  jwt: {issuer: "https://east.example.com", audiences: ["https://dispatcher/v1/clusters/east/validate"], jwksFile: east.jwks}
  callers:
  - {name: metrics, jwt: {issuer: "https://east.example.com", audiences: ["https://dispatcher/v1/clusters/east/validate"], subjects: [metrics], jwksFile: east.jwks}, apiGroups: [metrics.example.io, custom.example.io]}
`

// The tokens that an API server issues are as good as what they attest, and a request by
// another one is refused before any webhook is called.
func TestTokens(t *testing.T) {
	r := newRig(t)
	east, stranger := newSigner(), newSigner()
	r.write("registry/east.jwks", east.keySet())
	r.cluster("east", issued)
	r.cluster("west", "")
	r.issue("east", pki.Subject{CommonName: "east"})
	r.configure("tls: {clientAuth: IfGiven}\ntelemetry: {decisionLog: {file: decisions, allows: true}}")
	r.start()
	now := time.Now()
	about := func(group string) []byte { return []byte(question{group: group, resource: "things"}.review()) }
	for _, c := range []struct {
		name, token, cluster string
		group                string // that the review is about
		want                 int
		why                  string // in the log
	}{
		{"A25 all groups", east.token("server", now, "*"), "east", "apps", http.StatusOK, ""},
		{"A25 the group that is attested", east.token("server", now, "apps"), "east", "apps", http.StatusOK, ""},
		{"A25 a group of the caller", east.token("metrics", now, "*"), "east", "custom.example.io", http.StatusOK, ""},
		{"A25 another group than is attested", east.token("server", now, "apps"), "east", "batch", http.StatusForbidden, `"reason":"the review is about an API group`},
		{"A25 another group of the caller than is attested", east.token("metrics", now, "metrics.example.io"), "east", "custom.example.io", http.StatusForbidden, `"caller":"metrics"`},
		{"A25 a group that is attested and not the caller's", east.token("metrics", now, "apps"), "east", "apps", http.StatusForbidden, ""},
		{"A25 expired", east.token("server", now.Add(-2*time.Hour), "*"), "east", "apps", http.StatusForbidden, `"token":"is expired, not valid yet, or says exp or iat badly"`},
		{"A25 another key", stranger.token("server", now, "*"), "east", "apps", http.StatusForbidden, `"token":"is not signed by the key that it names"`},
		{"A25 another cluster's path", east.token("server", now, "*"), "west", "apps", http.StatusForbidden, ""},
		{"A25 no attestation", east.token("server", now), "east", "apps", http.StatusForbidden, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(r.calls("policy"))
			client := r.clientAs("")
			defer client.CloseIdleConnections()
			for range 2 { // the second time the token may be remembered
				got := r.ask(question{cluster: c.cluster, client: client, token: c.token, body: about(c.group)})
				if got.status != c.want || got.err != nil {
					t.Errorf("HTTP status %d, want %d: %s, %v", got.status, c.want, got.text, got.err)
				}
			}
			if calls := len(r.calls("policy")) - before; (calls == 2) != (c.want == http.StatusOK) {
				t.Errorf("%d calls of the webhook", calls)
			}
			if !r.logged(c.why) {
				t.Errorf("the log does not say %s", c.why)
			}
		})
	}
	t.Run("A25 a certificate of the cluster and a token of one group", func(t *testing.T) {
		got := r.ask(question{client: r.clientAs("east"), token: east.token("server", now, "apps"), body: about("apps")})
		if got.status != http.StatusForbidden {
			t.Errorf("HTTP status %d: %s", got.status, got.text)
		}
	})
	r.process.end()
	decisions := string(must(os.ReadFile(filepath.Join(r.dir, "decisions"))))
	if n := strings.Count(decisions, `"cluster":"east","caller":"metrics"`); n != 2 {
		t.Errorf("%d lines name the caller, want 2:\n%s", n, decisions)
	}
	if r.logged("eyJ") || strings.Contains(decisions, "eyJ") {
		t.Error("a log shows a token")
	}
}
