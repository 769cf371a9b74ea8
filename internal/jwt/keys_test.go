// SPDX-License-Identifier: Apache-2.0

package jwt_test

import (
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/jwt"
)

// E22: what a key set may hold.
func TestParseKeySet(t *testing.T) {
	rsa2048, p256, p384, p521 := newRSA(t, "rsa", 2048), newEC(t, "p256"), newEC(t, "p384"), newEC(t, "p521")
	good := rsa2048.jwk()
	for name, c := range map[string]struct {
		set     string
		ids     string // of the keys
		skipped string // a part of the one reason; empty: nothing is skipped
		err     string // a part
	}{
		"one of each kind":        {set: keySet(good, p256.jwk(), p384.jwk(), p521.jwk()), ids: "p256 p384 p521 rsa"},
		"of another use":          {set: keySet(good, with(p256.jwk(), "use", `"enc"`)), ids: "rsa", skipped: "use"},
		"of other operations":     {set: keySet(good, with(p256.jwk(), "key_ops", `["sign"]`)), ids: "rsa", skipped: "use"},
		"to verify":               {set: keySet(with(p256.jwk(), "key_ops", `["verify"]`)), ids: "p256"},
		"of another kind":         {set: keySet(good, `{"kty":"OKP","kid":"o","crv":"Ed25519","x":"AA"}`), ids: "rsa", skipped: "kty"},
		"of another curve":        {set: keySet(good, with(p256.jwk(), "crv", `"secp256k1"`)), ids: "rsa", skipped: "curve"},
		"of another algorithm":    {set: keySet(good, with(p256.jwk(), "alg", `"ES384"`)), ids: "rsa", skipped: "alg"},
		"unknown members":         {set: keySet(with(good, "x5t", `"abc"`)), ids: "rsa"},
		"nothing":                 {set: ``, err: "is not a JSON Web Key Set"},
		"no keys":                 {set: `{}`, err: "holds no key"},
		"only skipped ones":       {set: keySet(with(p256.jwk(), "use", `"enc"`)), skipped: "use", err: "holds no key"},
		"members twice":           {set: keySet(strings.Replace(good, `{`, `{"kid":"other",`, 1)), err: "is not a JSON Web Key Set"},
		"without kid":             {set: keySet(with(good, "kid", `""`)), err: "key 1: has no kid"},
		"one kid twice":           {set: keySet(good, with(p256.jwk(), "kid", `"rsa"`)), err: "key 2: another key has the same kid"},
		"a private key":           {set: keySet(with(p256.jwk(), "d", `"c2VjcmV0"`)), err: "secret or private"},
		"a symmetric key":         {set: keySet(`{"kty":"oct","kid":"s","k":"c2VjcmV0"}`), err: "secret or private"},
		"a symmetric key by half": {set: keySet(with(good, "k", `"c2VjcmV0"`)), err: "secret or private"},
		"a short modulus":         {set: keySet(newRSA(t, "short", 1024).jwk()), err: "has 1024 bits"},
		"a long modulus":          {set: keySet(with(good, "n", `"`+encode(append([]byte{0x80}, make([]byte, 1024)...))+`"`)), err: "has 8200 bits"},
		"an even modulus":         {set: keySet(with(good, "n", `"`+encode(append([]byte{0x80}, make([]byte, 255)...))+`"`)), err: "no RSA key has"},
		"exponent 1":              {set: keySet(with(good, "e", `"AQ"`)), err: "no RSA key has"},
		"an even exponent":        {set: keySet(with(good, "e", `"AQAA"`)), err: "no RSA key has"},
		"a huge exponent":         {set: keySet(with(good, "e", `"`+encode([]byte{1, 0, 0, 0, 0, 0, 0, 0, 1})+`"`)), err: "no RSA key has"},
		"an exponent of 33 bits":  {set: keySet(with(good, "e", `"`+encode([]byte{1, 0, 0, 0, 1})+`"`)), err: "no RSA key has"},
		"padding":                 {set: keySet(with(good, "e", `"AQAB=="`)), err: "e is not a number"},
		"no modulus":              {set: keySet(with(good, "n", `""`)), err: "n is not a number"},
		"a point elsewhere":       {set: keySet(with(p256.jwk(), "x", `"`+encode(make([]byte, 32))+`"`)), err: "not on the curve"},
		"a short coordinate":      {set: keySet(with(p256.jwk(), "x", `"AAAA"`)), err: "32 bytes each"},
		"too many":                {set: keySet(strings.Split(strings.Repeat(good+"\n", jwt.MaxKeys+1), "\n")[:jwt.MaxKeys+1]...), err: "holds 17 keys"},
		"too large":               {set: `{"keys":[]` + strings.Repeat(" ", jwt.MaxKeySetBytes) + `}`, err: "bytes"},
	} {
		t.Run("E22 "+name, func(t *testing.T) {
			keys, skipped, err := jwt.ParseKeySet([]byte(c.set))
			if got := strings.Join(sortedIDs(keys), " "); got != c.ids {
				t.Errorf("keys %q, want %q", got, c.ids)
			}
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			if (len(skipped) > 0) != (c.skipped != "") || len(skipped) > 0 && !strings.Contains(skipped[0], c.skipped) {
				t.Errorf("skipped %q, want %q", skipped, c.skipped)
			}
			if err != nil && strings.Contains(err.Error(), "c2VjcmV0") {
				t.Error("the error shows a secret")
			}
		})
	}
}
