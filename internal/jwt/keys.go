// SPDX-License-Identifier: Apache-2.0

// Package jwt verifies the JSON Web Tokens of API servers with keys that are configured:
// it reads nothing over a network.
package jwt

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"sigs.k8s.io/json"
)

// The bounds of a key set. A signature of the largest key costs well below a TLS
// handshake.
const (
	MaxKeySetBytes = 64 << 10
	MaxKeys        = 16
	minModulusBits = 2048
	maxModulusBits = 8192
	maxExponent    = 1<<31 - 1 // crypto/rsa takes no larger one
)

// Key is a public key and the algorithms that its signatures may have.
type Key struct {
	ID         string
	Sum        [sha256.Size]byte // SHA-256 of its SubjectPublicKeyInfo
	public     any
	algorithms []string
}

// KeySet is a set of keys by ID (RFC 7517). It is read-only.
type KeySet map[string]*Key

// jsonKey is a key as a JSON Web Key Set has it. Of secret members nothing but their
// presence is kept.
type jsonKey struct {
	Type      string   `json:"kty"`
	ID        string   `json:"kid"`
	Use       string   `json:"use"`
	Uses      []string `json:"key_ops"`
	Algorithm string   `json:"alg"`
	Modulus   string   `json:"n"`
	Exponent  string   `json:"e"`
	Curve     string   `json:"crv"`
	X         string   `json:"x"`
	Y         string   `json:"y"`
	Private   present  `json:"d"`
	Symmetric present  `json:"k"`
}

type present bool

func (p *present) UnmarshalJSON([]byte) error {
	*p = true
	return nil
}

// ParseKeySet reads a JSON Web Key Set. Keys that are for something else than to verify
// signatures, and those of kinds that are not known, are skipped, and skipped names why. No
// text shows a value of a key.
func ParseKeySet(data []byte) (keys KeySet, skipped []string, err error) {
	if len(data) > MaxKeySetBytes {
		return nil, nil, fmt.Errorf("is a key set of %d bytes, and may have %d", len(data), MaxKeySetBytes)
	}
	var set struct {
		Keys []jsonKey `json:"keys"`
	}
	if strict, err := json.UnmarshalStrict(data, &set, json.DisallowDuplicateFields); err != nil || len(strict) > 0 {
		return nil, nil, errors.New("is not a JSON Web Key Set")
	}
	if len(set.Keys) > MaxKeys {
		return nil, nil, fmt.Errorf("holds %d keys, and may hold %d", len(set.Keys), MaxKeys)
	}
	keys = KeySet{}
	for i := range set.Keys {
		k, err := set.Keys[i].parse()
		switch {
		case errors.As(err, new(otherKey)):
			skipped = append(skipped, fmt.Sprintf("key %d is skipped: %v", i+1, err))
			continue
		case err != nil:
			return nil, nil, fmt.Errorf("key %d: %w", i+1, err)
		case keys[k.ID] != nil:
			return nil, nil, fmt.Errorf("key %d: another key has the same kid", i+1)
		}
		keys[k.ID] = k
	}
	if len(keys) == 0 {
		return nil, skipped, errors.New("holds no key that verifies RS256, RS384, RS512, ES256, ES384 or ES512")
	}
	return keys, skipped, nil
}

// otherKey is why a key is none of ours.
type otherKey string

func (e otherKey) Error() string { return string(e) }

func (j *jsonKey) parse() (*Key, error) {
	switch {
	case bool(j.Private), bool(j.Symmetric), j.Type == "oct":
		return nil, errors.New("is a secret or private key: replace it where it is used, and name the public keys here")
	case j.Use != "" && j.Use != "sig", len(j.Uses) > 0 && !slices.Contains(j.Uses, "verify"):
		return nil, otherKey("its use is not to verify signatures")
	case j.ID == "":
		return nil, errors.New("has no kid, by which tokens name it")
	}
	k := &Key{ID: j.ID}
	var err error
	switch j.Type {
	case "RSA":
		k.algorithms = []string{"RS256", "RS384", "RS512"}
		k.public, err = j.rsa()
	case "EC":
		c, known := curves[j.Curve]
		if !known {
			return nil, otherKey("its curve is none of P-256, P-384 and P-521")
		}
		k.algorithms = []string{c.algorithm}
		k.public, err = j.ecdsa(c)
	default:
		return nil, otherKey("its kty is neither RSA nor EC")
	}
	if err != nil {
		return nil, err
	}
	if j.Algorithm != "" {
		if !slices.Contains(k.algorithms, j.Algorithm) {
			return nil, otherKey("its alg is none that it may have here")
		}
		k.algorithms = []string{j.Algorithm}
	}
	der, err := x509.MarshalPKIXPublicKey(k.public)
	if err != nil {
		return nil, errors.New("is not a key that certificates could have")
	}
	k.Sum = sha256.Sum256(der)
	return k, nil
}

func (j *jsonKey) rsa() (*rsa.PublicKey, error) {
	n, err := number(j.Modulus)
	if err != nil {
		return nil, fmt.Errorf("n %w", err)
	}
	e, err := number(j.Exponent)
	if err != nil {
		return nil, fmt.Errorf("e %w", err)
	}
	if bits := n.BitLen(); bits < minModulusBits || bits > maxModulusBits {
		return nil, fmt.Errorf("has %d bits, and must have %d to %d", bits, minModulusBits, maxModulusBits)
	}
	if !e.IsInt64() || e.Int64() < 3 || e.Int64() > maxExponent || e.Bit(0) == 0 || n.Bit(0) == 0 {
		return nil, errors.New("has an exponent or a modulus that no RSA key has")
	}
	return &rsa.PublicKey{N: n, E: int(e.Int64())}, nil
}

func number(s string) (*big.Int, error) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(data) == 0 {
		return nil, errors.New("is not a number in base64url")
	}
	return new(big.Int).SetBytes(data), nil
}

// curve is one of RFC 7518, 6.2.1.1, and the algorithm of its signatures.
type curve struct {
	elliptic.Curve
	algorithm string
}

var curves = map[string]curve{
	"P-256": {elliptic.P256(), "ES256"},
	"P-384": {elliptic.P384(), "ES384"},
	"P-521": {elliptic.P521(), "ES512"},
}

func (j *jsonKey) ecdsa(c curve) (*ecdsa.PublicKey, error) {
	size := (c.Params().BitSize + 7) / 8
	point := []byte{4} // uncompressed
	for _, coordinate := range []string{j.X, j.Y} {
		data, err := base64.RawURLEncoding.Strict().DecodeString(coordinate)
		if err != nil || len(data) != size {
			return nil, fmt.Errorf("x and y must be %d bytes each in base64url", size)
		}
		point = append(point, data...)
	}
	public, err := ecdsa.ParseUncompressedPublicKey(c.Curve, point)
	if err != nil {
		return nil, errors.New("its point is not on the curve")
	}
	return public, nil
}
