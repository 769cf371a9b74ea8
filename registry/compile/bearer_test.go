// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"time"

	lib "github.com/golang-jwt/jwt/v5"

	"github.com/admission-dispatcher/dispatcher/internal/jwt"
	"github.com/admission-dispatcher/dispatcher/registry/compile"
)

// tokenIssuer is the API server of a cluster that issues tokens.
type tokenIssuer struct {
	t    testing.TB
	name string
	key  *ecdsa.PrivateKey
}

func newTokenIssuer(t testing.TB, name string) tokenIssuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return tokenIssuer{t, name, key}
}

func (i tokenIssuer) keySet() string {
	point, err := i.key.PublicKey.Bytes()
	if err != nil {
		i.t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return fmt.Sprintf(`{"keys":[{"kty":"EC","kid":%q,"crv":"P-256","x":%q,"y":%q}]}`, i.name, encode(point[1:33]), encode(point[33:]))
}

// token issues one for an hour from at on; groups are what it attests, with one.
func (i tokenIssuer) token(subject, id string, at time.Time, groups ...string) []byte {
	claims := lib.MapClaims{"iss": i.name, "sub": subject, "aud": "dispatcher", "jti": id, "iat": at.Unix(), "exp": at.Add(time.Hour).Unix()}
	if len(groups) > 0 {
		claims["kubernetes.io"] = map[string]any{"attestations": map[string]any{"admissionReviewAPIGroups": groups}}
	}
	token := lib.NewWithClaims(lib.SigningMethodES256, claims)
	token.Header["kid"] = i.name
	signed, err := token.SignedString(i.key)
	if err != nil {
		i.t.Fatal(err)
	}
	return []byte(signed)
}

const issuersYAML = `
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec:
  authentication:
    jwt: {issuer: east, audiences: [dispatcher], jwksFile: east.jwks}
    callers:
    - {name: metrics, jwt: {issuer: east, audiences: [dispatcher], subjects: [metrics], jwksFile: east.jwks}, apiGroups: [metrics.example.io, custom.example.io]}
---
apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: west}
spec: {authentication: {jwt: {issuer: west, audiences: [dispatcher], subjects: [server], jwksFile: west.jwks}}}
`

func issuersOf(t *testing.T) (east, west tokenIssuer, s *compile.Compiled) {
	t.Helper()
	east, west = newTokenIssuer(t, "east"), newTokenIssuer(t, "west")
	h := newHome(t)
	h.put("clusters.yaml", issuersYAML)
	h.put("east.jwks", east.keySet())
	h.put("west.jwks", west.keySet())
	return east, west, h.good(compile.Options{})
}

// A25: whose token this is, and what it may send.
func TestByJWT(t *testing.T) {
	east, west, s := issuersOf(t)
	now := time.Now()
	for name, c := range map[string]struct {
		token   []byte
		path    string // the cluster in it
		cluster string
		caller  string
		groups  []string
		err     error
	}{
		"all groups":                        {token: east.token("server", "", now, "*"), path: "east", cluster: "east"},
		"one group":                         {token: east.token("server", "", now, "apps"), path: "east", cluster: "east", caller: "server", groups: []string{"apps"}},
		"a subject that is listed":          {token: west.token("server", "", now), path: "west", cluster: "west"},
		"a caller":                          {token: east.token("metrics", "", now), path: "east", cluster: "east", caller: "metrics", groups: []string{"metrics.example.io", "custom.example.io"}},
		"a caller, any group":               {token: east.token("metrics", "", now, "*"), path: "east", cluster: "east", caller: "metrics", groups: []string{"metrics.example.io", "custom.example.io"}},
		"a caller, one of its groups":       {token: east.token("metrics", "", now, "custom.example.io"), path: "east", cluster: "east", caller: "metrics", groups: []string{"custom.example.io"}},
		"a caller, a group that is not its": {token: east.token("metrics", "", now, "apps"), path: "east", cluster: "east", caller: "metrics"},
		"another cluster's path":            {token: east.token("server", "", now, "*"), path: "west", err: jwt.ErrIssuer},
		"a path of no cluster":              {token: east.token("server", "", now, "*"), path: "north"},
		"another cluster's key":             {token: tokenIssuer{t, "east", west.key}.token("server", "", now, "*"), path: "east", err: jwt.ErrSignature},
		"expired":                           {token: east.token("server", "", now.Add(-2*time.Hour), "*"), path: "east", err: jwt.ErrTime},
	} {
		t.Run("A25 "+name, func(t *testing.T) {
			for range 2 { // the second time it may be remembered
				got, err := s.ByToken(c.token, []byte(c.path), now)
				if !errors.Is(err, c.err) || got.Cluster != c.cluster {
					t.Fatalf("of %q, %v, want %q, %v", got.Cluster, err, c.cluster, c.err)
				}
				if (got.Server == nil) != (c.caller == "") {
					t.Fatalf("the server is %v, want %q", got.Server, c.caller)
				}
				if got.Server != nil && (got.Server.Name != c.caller || fmt.Sprint(got.Server.Groups) != fmt.Sprint(c.groups)) {
					t.Errorf("the server is %v, want %q with %v", *got.Server, c.caller, c.groups)
				}
			}
		})
	}
}

// A token is good no longer than it says, whether it is remembered or not.
func TestBearersExpire(t *testing.T) {
	east, _, s := issuersOf(t)
	now := time.Now()
	token := east.token("server", "", now, "*")
	for _, c := range []struct {
		at   time.Duration
		want string
	}{{0, "east"}, {time.Hour, "east"}, {time.Hour + jwt.Leeway, ""}, {time.Minute, "east"}} {
		if who, _ := s.ByToken(token, []byte("east"), now.Add(c.at)); who.Cluster != c.want {
			t.Errorf("after %v it is of %q, want %q", c.at, who.Cluster, c.want)
		}
	}
}

// What a cluster shows does not make another one's tokens be forgotten, and is bounded.
func TestBearersAreBounded(t *testing.T) {
	east, west, s := issuersOf(t)
	now := time.Now()
	kept := west.token("server", "kept", now)
	if who, err := s.ByToken(kept, []byte("west"), now); who.Cluster != "west" {
		t.Fatal(err)
	}
	for i := range compile.MaxBearers + 10 {
		if who, err := s.ByToken(east.token("server", fmt.Sprint(i), now, "*"), []byte("east"), now); who.Cluster != "east" {
			t.Fatal(i, err)
		}
	}
	if n := compile.Remembered(s, "east"); n != compile.MaxBearers {
		t.Errorf("%d tokens of one cluster are remembered, want %d", n, compile.MaxBearers)
	}
	if n := compile.Remembered(s, "west"); n != 1 {
		t.Errorf("%d tokens of the other cluster are remembered, want 1", n)
	}
	later := now.Add(time.Hour + jwt.Leeway)
	if who, err := s.ByToken(east.token("server", "later", later, "*"), []byte("east"), later); who.Cluster != "east" {
		t.Fatal(err)
	}
	if n := compile.Remembered(s, "east"); n != 1 {
		t.Errorf("%d tokens are remembered when all but one have expired, want 1", n)
	}
}

// What is not good is not remembered.
func TestBearersRememberWhatIsGood(t *testing.T) {
	_, west, s := issuersOf(t)
	for i := range 10 {
		if _, err := s.ByToken(west.token("nobody", fmt.Sprint(i), time.Now()), []byte("west"), time.Now()); err == nil {
			t.Fatal("a token of nobody is good")
		}
	}
	if n := compile.Remembered(s, "west"); n != 0 {
		t.Errorf("%d are remembered", n)
	}
}

// A token that is remembered costs no allocation.
func TestBearersAllocateNothing(t *testing.T) {
	east, _, s := issuersOf(t)
	now, path := time.Now(), []byte("east")
	token := east.token("server", "", now, "*")
	if n := testing.AllocsPerRun(100, func() {
		if who, _ := s.ByToken(token, path, now); who.Cluster == "" {
			t.Fatal("it is of nobody")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
