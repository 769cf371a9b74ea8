// SPDX-License-Identifier: Apache-2.0

package jwt_test

import (
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	josejwt "github.com/golang-jwt/jwt/v5"

	"github.com/admission-dispatcher/dispatcher/internal/jwt"
)

// A25: which tokens are good, and for whom.
func TestVerify(t *testing.T) {
	rsa, p256, p384, p521 := newRSA(t, "rsa", 2048), newEC(t, "p256"), newEC(t, "p384"), newEC(t, "p521")
	stranger, listed := newEC(t, "p256"), newEC(t, "p256-metrics")
	set := jwt.Set{
		{Name: issuer, Audiences: []string{"https://other.example.com", audience}, Keys: parse(t, rsa, p256, p384, p521)},
		{Name: issuer, Audiences: []string{audience}, Subjects: []string{metrics}, Keys: parse(t, listed)},
		{Name: "https://old.example.com", Audiences: []string{audience}, Subjects: []string{server}, Keys: parse(t, p256)},
	}
	good, unattested := claimsOf(nil), claimsOf(map[string]string{"kubernetes.io": ""})
	signed := func(replaced map[string]string) string { return p256.sign(p256.header(), claimsOf(replaced)) }
	hmac := func(key []byte) string {
		text := encode([]byte(`{"alg":"HS256","kid":"p256"}`)) + "." + encode([]byte(good))
		signature, err := josejwt.SigningMethodHS256.Sign(text, key)
		if err != nil {
			t.Fatal(err)
		}
		return text + "." + encode(signature)
	}
	der, err := x509.MarshalPKIXPublicKey(p256.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	other := rsa
	other.algorithm = "RS512"
	pss := rsa
	pss.algorithm = "PS256"
	cut := strings.LastIndexByte(signed(nil), '.')
	type want struct {
		issuer int
		group  string
		err    error
	}
	for name, c := range map[string]struct {
		token string
		want
	}{
		"RS256":                           {rsa.sign(rsa.header(), good), want{group: "*"}},
		"RS512":                           {other.sign(other.header(), good), want{group: "*"}},
		"ES256":                           {signed(nil), want{group: "*"}},
		"ES384":                           {p384.sign(p384.header(), good), want{group: "*"}},
		"ES512":                           {p521.sign(p521.header(), good), want{group: "*"}},
		"one group":                       {signed(map[string]string{"kubernetes.io": attesting("apps")}), want{group: "apps"}},
		"two audiences":                   {signed(map[string]string{"aud": `["x","` + audience + `"]`}), want{group: "*"}},
		"one audience, no list":           {signed(map[string]string{"aud": `"` + audience + `"`}), want{group: "*"}},
		"a listed subject":                {listed.sign(listed.header(), claimsOf(map[string]string{"sub": `"` + metrics + `"`, "kubernetes.io": ""})), want{issuer: 1}},
		"a listed subject that says more": {listed.sign(listed.header(), claimsOf(map[string]string{"sub": `"` + metrics + `"`})), want{issuer: 1, group: "*"}},
		"another issuer":                  {p256.sign(p256.header(), claimsOf(map[string]string{"iss": `"https://old.example.com"`, "kubernetes.io": ""})), want{issuer: 2}},
		"without nbf":                     {signed(map[string]string{"nbf": ""}), want{group: "*"}},
		"expired, within the leeway":      {signed(map[string]string{"exp": at(-29 * time.Second)}), want{group: "*"}},
		"issued soon, within the leeway":  {signed(map[string]string{"iat": at(30 * time.Second), "nbf": at(30 * time.Second)}), want{group: "*"}},
		"the longest life":                {signed(map[string]string{"iat": at(-time.Hour), "exp": at(23 * time.Hour)}), want{group: "*"}},

		"nothing":                     {"", want{err: jwt.ErrMalformed}},
		"no token":                    {"secret", want{err: jwt.ErrMalformed}},
		"two parts":                   {signed(nil)[:cut], want{err: jwt.ErrMalformed}},
		"four parts":                  {signed(nil) + ".x", want{err: jwt.ErrMalformed}},
		"padding":                     {signed(nil) + "=", want{err: jwt.ErrMalformed}},
		"too long":                    {signed(map[string]string{"x": `"` + strings.Repeat("x", jwt.MaxBytes) + `"`}), want{err: jwt.ErrMalformed}},
		"a claim twice":               {p256.sign(p256.header(), strings.Replace(good, `{`, `{"aud":"x",`, 1)), want{err: jwt.ErrMalformed}},
		"a claim in another case":     {p256.sign(p256.header(), strings.Replace(good, `"aud"`, `"Aud"`, 1)), want{err: jwt.ErrAudience}},
		"no signature":                {signed(nil)[:cut+1], want{err: jwt.ErrSignature}},
		"another key's signature":     {stranger.sign(stranger.header(), good), want{err: jwt.ErrSignature}},
		"changed claims":              {strings.Replace(signed(nil), encode([]byte(good)), encode([]byte(good+" ")), 1), want{err: jwt.ErrSignature}},
		"alg none":                    {encode([]byte(`{"alg":"none","kid":"p256"}`)) + "." + encode([]byte(good)) + ".", want{err: jwt.ErrKey}},
		"HMAC with the public key":    {hmac(der), want{err: jwt.ErrKey}},
		"PS256":                       {pss.sign(pss.header(), good), want{err: jwt.ErrKey}},
		"an algorithm of another key": {rsa.sign(`{"alg":"RS256","kid":"p256"}`, good), want{err: jwt.ErrKey}},
		"no kid":                      {p256.sign(`{"alg":"ES256"}`, good), want{err: jwt.ErrKey}},
		"another kid":                 {p256.sign(`{"alg":"ES256","kid":"p256-metrics"}`, good), want{err: jwt.ErrKey}},
		"a key in the header":         {stranger.sign(`{"alg":"ES256","kid":"mine","jwk":`+stranger.jwk()+`}`, good), want{err: jwt.ErrKey}},
		"a header member twice":       {p256.sign(`{"alg":"ES256","kid":"rsa","kid":"p256"}`, good), want{err: jwt.ErrKey}},
		"a critical header":           {p256.sign(`{"alg":"ES256","kid":"p256","crit":["b64"],"b64":true}`, good), want{err: jwt.ErrKey}},
		"an unknown issuer":           {signed(map[string]string{"iss": `"https://kubernetes.default.svc/"`}), want{err: jwt.ErrIssuer}},
		"no issuer":                   {signed(map[string]string{"iss": ""}), want{err: jwt.ErrIssuer}},
		"an unlisted subject":         {signed(map[string]string{"iss": `"https://old.example.com"`, "sub": `"system:serviceaccount:default:webhook-auth"`}), want{err: jwt.ErrIssuer}},
		"the kube-apiserver's key for a listed subject": {signed(map[string]string{"sub": `"` + metrics + `"`}), want{err: jwt.ErrKey}},
		"another audience":                    {signed(map[string]string{"aud": `["` + audience + `/"]`}), want{err: jwt.ErrAudience}},
		"an audience of another issuer entry": {listed.sign(listed.header(), claimsOf(map[string]string{"sub": `"` + metrics + `"`, "aud": `"https://other.example.com"`})), want{err: jwt.ErrAudience}},
		"no audience":                         {signed(map[string]string{"aud": ""}), want{err: jwt.ErrAudience}},
		"expired":                             {signed(map[string]string{"exp": at(-30 * time.Second)}), want{err: jwt.ErrTime}},
		"without exp":                         {signed(map[string]string{"exp": ""}), want{err: jwt.ErrTime}},
		"without iat":                         {signed(map[string]string{"iat": ""}), want{err: jwt.ErrTime}},
		"issued later":                        {signed(map[string]string{"iat": at(31 * time.Second)}), want{err: jwt.ErrTime}},
		"valid later":                         {signed(map[string]string{"nbf": at(31 * time.Second)}), want{err: jwt.ErrTime}},
		"exp beyond all numbers":              {signed(map[string]string{"exp": "1e300"}), want{err: jwt.ErrTime}},
		"exp in a string":                     {signed(map[string]string{"exp": `"1e300"`}), want{err: jwt.ErrTime}},
		"too long a life":                     {signed(map[string]string{"iat": at(-time.Hour), "exp": at(23*time.Hour + time.Second)}), want{err: jwt.ErrLifetime}},
		"issued before all times":             {signed(map[string]string{"iat": "-1e18"}), want{err: jwt.ErrLifetime}},
		"no attestation":                      {p256.sign(p256.header(), unattested), want{err: jwt.ErrAttestation}},
		"no group":                            {signed(map[string]string{"kubernetes.io": attesting()}), want{err: jwt.ErrAttestation}},
		"two groups":                          {signed(map[string]string{"kubernetes.io": attesting("apps", "batch")}), want{err: jwt.ErrAttestation}},
		"an empty group":                      {signed(map[string]string{"kubernetes.io": attesting("")}), want{err: jwt.ErrAttestation}},
		"another attestation":                 {signed(map[string]string{"kubernetes.io": `{"attestations":{"allowedAPIGroup":["*"]}}`}), want{err: jwt.ErrAttestation}},
		"another attestation of a listed subject": {listed.sign(listed.header(), claimsOf(map[string]string{"sub": `"` + metrics + `"`, "kubernetes.io": `{"attestations":{"x":["*"]}}`})), want{err: jwt.ErrAttestation}},
		"attestations that are no list":           {signed(map[string]string{"kubernetes.io": `{"attestations":{"admissionReviewAPIGroups":"*"}}`}), want{err: jwt.ErrMalformed}},
	} {
		t.Run("A25 "+name, func(t *testing.T) {
			got, err := set.Verify([]byte(c.token), now)
			if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if got.Issuer != c.issuer || got.Group != c.group {
				t.Errorf("issuer %d, group %q, want %d, %q", got.Issuer, got.Group, c.issuer, c.group)
			}
			if err == nil && got.Subject == "" {
				t.Error("no subject")
			}
		})
	}
}

// What is remembered until then is good until then, to the second.
func TestUntil(t *testing.T) {
	s := newEC(t, "p256")
	set := jwt.Set{{Name: issuer, Audiences: []string{audience}, Keys: parse(t, s)}}
	token := []byte(s.sign(s.header(), claimsOf(nil)))
	got, err := set.Verify(token, now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Verify(token, got.Until.Add(-time.Second)); err != nil {
		t.Errorf("a second before: %v", err)
	}
	if _, err := set.Verify(token, got.Until); !errors.Is(err, jwt.ErrTime) {
		t.Errorf("at that time: %v", err)
	}
}

// A25: who lists a subject has its tokens, wherever it stands in the set.
func TestListedSubject(t *testing.T) {
	s := newEC(t, "p256")
	keys := parse(t, s)
	unlisted, listed := jwt.Issuer{Name: issuer, Audiences: []string{audience}, Keys: keys}, jwt.Issuer{Name: issuer, Audiences: []string{audience}, Subjects: []string{metrics}, Keys: keys}
	token := []byte(s.sign(s.header(), claimsOf(map[string]string{"sub": `"` + metrics + `"`})))
	for want, set := range []jwt.Set{{listed, unlisted}, {unlisted, listed}} {
		if got, err := set.Verify(token, now); err != nil || got.Issuer != want {
			t.Errorf("issuer %d, %v, want %d", got.Issuer, err, want)
		}
	}
}
