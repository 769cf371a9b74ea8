// SPDX-License-Identifier: Apache-2.0

package jwt_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	josejwt "github.com/golang-jwt/jwt/v5"

	"github.com/admission-dispatcher/dispatcher/internal/jwt"
)

// signer is a key of an issuer, and its algorithm.
type signer struct {
	id, algorithm string
	key           crypto.Signer
}

func newRSA(t testing.TB, id string, bits int) signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return signer{id, "RS256", key}
}

// newEC makes a key of the curve that its ID begins with.
func newEC(t testing.TB, id string) signer {
	t.Helper()
	curve, algorithm := elliptic.P256(), "ES256"
	switch {
	case strings.HasPrefix(id, "p384"):
		curve, algorithm = elliptic.P384(), "ES384"
	case strings.HasPrefix(id, "p521"):
		curve, algorithm = elliptic.P521(), "ES512"
	}
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signer{id, algorithm, key}
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// jwk is the public key as a key set has it.
func (s signer) jwk() string {
	switch k := s.key.Public().(type) {
	case *rsa.PublicKey:
		return fmt.Sprintf(`{"kty":"RSA","kid":%q,"n":%q,"e":"AQAB"}`, s.id, encode(k.N.Bytes()))
	case *ecdsa.PublicKey:
		point, err := k.Bytes()
		if err != nil {
			panic(err)
		}
		half := len(point) / 2
		return fmt.Sprintf(`{"kty":"EC","kid":%q,"crv":%q,"x":%q,"y":%q}`, s.id, k.Params().Name, encode(point[1:1+half]), encode(point[1+half:]))
	}
	return ""
}

func keySet(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }

// with returns a JSON object with a member replaced or added.
func with(object, name, value string) string {
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(object), &members); err != nil {
		panic(err)
	}
	members[name] = json.RawMessage(value)
	out, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	return string(out)
}

func sortedIDs(keys jwt.KeySet) []string { return slices.Sorted(maps.Keys(keys)) }

// sign makes a token of a header, which says at least what the signer's would, and claims,
// both JSON.
func (s signer) sign(header, claims string) string {
	text := encode([]byte(header)) + "." + encode([]byte(claims))
	signature, err := josejwt.GetSigningMethod(s.algorithm).Sign(text, s.key)
	if err != nil {
		panic(err)
	}
	return text + "." + encode(signature)
}

func (s signer) header() string { return fmt.Sprintf(`{"alg":%q,"kid":%q}`, s.algorithm, s.id) }

// The names of a world.
const (
	issuer   = "https://kubernetes.default.svc"
	audience = "https://dispatcher.example.com/v1/clusters/east/validate"
	server   = "system:serviceaccount:kube-system:webhook-auth"
	metrics  = "system:serviceaccount:metrics:webhook-auth"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// claimsOf are those of a token of KEP-6060, good at now, with some replaced; "" drops one.
func claimsOf(replaced map[string]string) string {
	members := map[string]json.RawMessage{}
	for name, value := range map[string]string{
		"iss": `"` + issuer + `"`, "sub": `"` + server + `"`, "aud": `["` + audience + `"]`,
		"iat": at(-time.Minute), "nbf": at(-time.Minute), "exp": at(9 * time.Minute),
		"kubernetes.io": attesting("*"),
	} {
		members[name] = json.RawMessage(value)
	}
	for name, value := range replaced {
		members[name] = json.RawMessage(value)
		if value == "" {
			delete(members, name)
		}
	}
	out, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	return string(out)
}

func at(d time.Duration) string { return fmt.Sprint(now.Add(d).Unix()) }

// attesting is the private claim of a token, as kube-apiserver 1.37 writes it.
func attesting(groups ...string) string {
	quoted, err := json.Marshal(groups)
	if err != nil {
		panic(err)
	}
	return `{"namespace":"kube-system","serviceaccount":{"name":"webhook-auth","uid":"1"},` +
		`"validatingwebhookconfiguration":{"name":"admission-dispatcher","uid":"2"},"attestations":{"admissionReviewAPIGroups":` + string(quoted) + `}}`
}

func parse(t testing.TB, signers ...signer) jwt.KeySet {
	t.Helper()
	var keys []string
	for _, s := range signers {
		keys = append(keys, s.jwk())
	}
	set, _, err := jwt.ParseKeySet([]byte(keySet(keys...)))
	if err != nil {
		t.Fatal(err)
	}
	return set
}
