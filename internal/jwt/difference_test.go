// SPDX-License-Identifier: Apache-2.0

package jwt_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	josejwt "github.com/go-jose/go-jose/v4/jwt"

	"github.com/admission-dispatcher/dispatcher/internal/jwt"
)

// FuzzToken makes tokens of a header and claims, one in a line each, signs them, and compares
// what comes of them with what go-jose makes of the same tokens and key set. What has no two
// lines is a token as it is.
func FuzzToken(f *testing.F) {
	s := newEC(f, "p256")
	for _, claims := range []map[string]string{
		nil, {"aud": `"` + audience + `"`}, {"aud": `["x"]`}, {"exp": at(-time.Minute)}, {"exp": "1795435800.75"}, {"nbf": at(time.Hour)},
		{"iat": ""}, {"sub": "null"}, {"kubernetes.io": ""}, {"kubernetes.io": attesting("apps")}, {"kubernetes.io": attesting("", "*")},
		{"kubernetes.io": "null"}, {"iss": "1"}, {"exp": "-1e400"}, {"nbf": "null"},
	} {
		f.Add([]byte(s.header() + "\n" + claimsOf(claims)))
	}
	for _, header := range []string{`{"alg":"none"}`, `{"alg":"HS256","kid":"p256"}`, `{"alg":"ES256","kid":"p256","crit":["exp"]}`, `{"alg":"ES256"}`, `{}`, `{"alg":1}`, `null`} {
		f.Add([]byte(header + "\n" + claimsOf(nil)))
	}
	f.Add([]byte(s.sign(s.header(), claimsOf(nil))))
	set := jwt.Set{{Name: issuer, Audiences: []string{audience}, Keys: parse(f, s)}}
	var keys jose.JSONWebKeySet
	if err := json.Unmarshal([]byte(keySet(s.jwk())), &keys); err != nil {
		f.Fatal(err)
	}
	when := now.Add(time.Second / 2) // dates are whole seconds: no tie
	f.Fuzz(func(t *testing.T, data []byte) {
		header, claims, signs := strings.Cut(string(data), "\n")
		token := string(data)
		if signs {
			token = s.sign(header, claims)
		}
		got, err := set.Verify([]byte(token), when)
		if other, ok := oracle(token, &keys, when); ok {
			if (err == nil) != (other == nil) {
				t.Fatalf("we say %v, go-jose says %v:\n%s\n%s", err, other, header, claims)
			}
		} else if err == nil && !signs {
			t.Fatalf("a token that go-jose cannot read is good: %q", data)
		}
		if err == nil && (got.Group == "" || !got.Until.After(when) || got.Until.After(when.Add(jwt.MaxLifetime+2*jwt.Leeway))) {
			t.Errorf("good until %v for the group %q", got.Until, got.Group)
		}
	})
}

// oracle verifies a token with go-jose, and judges it by the claims that go-jose reads. It is
// not ok where go-jose reads members of the header that we ignore.
func oracle(token string, keys *jose.JSONWebKeySet, when time.Time) (_ error, ok bool) {
	if len(token) > jwt.MaxBytes {
		return errors.New("too long"), true
	}
	algorithms := []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512}
	parsed, err := josejwt.ParseSigned(token, algorithms)
	if err != nil {
		return err, !readsMore(token)
	}
	known := keys.Key(parsed.Headers[0].KeyID)
	if len(known) != 1 || parsed.Headers[0].KeyID == "" {
		return errors.New("no key"), true
	}
	var c josejwt.Claims
	var private struct {
		Kubernetes struct {
			Attestations map[string][]string `json:"attestations"`
		} `json:"kubernetes.io"`
	}
	if err := parsed.Claims(known[0].Key, &c, &private); err != nil {
		return err, true
	}
	expected := josejwt.Expected{Issuer: issuer, AnyAudience: []string{audience}, Time: when}
	if err := c.ValidateWithLeeway(expected, jwt.Leeway); err != nil {
		return err, true
	}
	if c.Expiry == nil || c.IssuedAt == nil || c.Expiry.Time().Sub(c.IssuedAt.Time()) > jwt.MaxLifetime {
		return errors.New("exp or iat"), true
	}
	if groups := private.Kubernetes.Attestations["admissionReviewAPIGroups"]; len(groups) != 1 || groups[0] == "" {
		return errors.New("attestation"), true
	}
	return nil, true
}

// readsMore reports whether the header has members whose values go-jose reads, and we do not.
func readsMore(token string) bool {
	header, _, _ := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(header)
	var members map[string]json.RawMessage
	if err != nil || json.Unmarshal(raw, &members) != nil {
		return false
	}
	for name := range members {
		if !slices.Contains([]string{"alg", "kid", "typ", "crit"}, name) {
			return true
		}
	}
	return false
}
