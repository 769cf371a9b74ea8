// SPDX-License-Identifier: Apache-2.0

package jwt

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"sigs.k8s.io/json"
)

// What a token may be.
const (
	// MaxBytes bounds a token before anything of it is read.
	MaxBytes = 8 << 10
	// Leeway is how far the clock of an issuer may be off, either way.
	Leeway = 30 * time.Second
	// MaxLifetime is the longest time from iat to exp.
	MaxLifetime = 24 * time.Hour
)

// AllGroups is the API group that an attestation names for all of them.
const AllGroups = "*"

// Issuer says whose tokens are accepted, and for whom.
type Issuer struct {
	Name      string   // iss, exactly
	Audiences []string // of aud, one exactly
	// Subjects are the subs that are accepted. Empty: any other than those that another
	// Issuer of the Set lists, of a token with an attestation.
	Subjects []string
	Keys     KeySet
}

// Set is the issuers of one cluster. No two list the same subject of one Name, and of those
// with one Name at most one lists none.
type Set []Issuer

// Token is what a good token says.
type Token struct {
	Issuer  int // in the Set
	Subject string
	// Group is the API group that the API server attests (KEP-6060): AllGroups, or the one
	// that reviews must be about. Empty: it attests nothing.
	Group string
	Until time.Time // from when on the token is good no more, Leeway included
}

// Why a token is not good. The texts are for logs: they show nothing of the token.
var (
	ErrMalformed   = errors.New("is not a JSON Web Token of at most 8192 bytes")
	ErrIssuer      = errors.New("is of an issuer, or for a subject, that is not accepted")
	ErrKey         = errors.New("has a header that names no key of the issuer by kid, or an algorithm that is not the key's")
	ErrSignature   = errors.New("is not signed by the key that it names")
	ErrTime        = errors.New("is expired, not valid yet, or says exp or iat badly")
	ErrLifetime    = errors.New("is good for longer than 24h")
	ErrAudience    = errors.New("is for another audience")
	ErrAttestation = errors.New("attests no single API group")
)

// parser reads tokens, and leaves to Verify what claims must be.
var parser = jwt.NewParser(
	jwt.WithValidMethods([]string{"RS256", "RS384", "RS512", "ES256", "ES384", "ES512"}),
	jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation(),
)

// Verify returns what a token says that is good at now. It verifies one signature at most,
// however many issuers there are. The error is one of this package.
func (s Set) Verify(token []byte, now time.Time) (Token, error) {
	if len(token) > MaxBytes {
		return Token{}, ErrMalformed
	}
	var c claims
	of := -1
	_, err := parser.ParseWithClaims(string(token), &c, func(t *jwt.Token) (any, error) {
		if of = s.issuerOf(&c); of < 0 {
			return nil, ErrIssuer
		}
		return s[of].Keys.keyOf(t)
	})
	switch {
	case errors.Is(err, ErrIssuer):
		return Token{}, ErrIssuer
	case errors.Is(err, ErrKey), errors.Is(err, jwt.ErrTokenSignatureInvalid) && of < 0:
		return Token{}, ErrKey // of < 0: the algorithm is none of ours
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return Token{}, ErrSignature
	case err != nil:
		return Token{}, ErrMalformed
	}
	return s[of].accept(&c, of, now)
}

// accept judges the claims of a token whose signature is good.
func (i *Issuer) accept(c *claims, of int, now time.Time) (Token, error) {
	group, attested := c.group()
	switch {
	case c.ExpiresAt == nil || c.IssuedAt == nil,
		!now.Before(c.ExpiresAt.Add(Leeway)),
		now.Before(c.IssuedAt.Add(-Leeway)),
		c.NotBefore != nil && now.Before(c.NotBefore.Add(-Leeway)):
		return Token{}, ErrTime
	case c.ExpiresAt.Sub(c.IssuedAt.Time) > MaxLifetime:
		return Token{}, ErrLifetime
	case !slices.ContainsFunc(c.Audience, func(a string) bool { return slices.Contains(i.Audiences, a) }):
		return Token{}, ErrAudience
	case !attested && len(c.Kubernetes.Attestations) > 0, !attested && len(i.Subjects) == 0:
		return Token{}, ErrAttestation
	}
	return Token{Issuer: of, Subject: c.Subject, Group: group, Until: c.ExpiresAt.Add(Leeway)}, nil
}

// issuerOf returns which issuer's token this claims to be, or -1. The one that lists the
// subject comes before one that lists none.
func (s Set) issuerOf(c *claims) int {
	found := -1
	for i := range s {
		switch {
		case s[i].Name != c.Issuer:
		case slices.Contains(s[i].Subjects, c.Subject):
			return i
		case len(s[i].Subjects) == 0:
			found = i
		}
	}
	return found
}

// keyOf returns the key that verifies a token. No header parameter is critical that we know
// (RFC 7515, 4.1.11), and none is there twice (4).
func (k KeySet) keyOf(t *jwt.Token) (any, error) {
	var once map[string]any
	header, _, _ := strings.Cut(t.Raw, ".")
	text, _ := parser.DecodeSegment(header) // which was decoded before
	if twice, err := json.UnmarshalStrict(text, &once, json.DisallowDuplicateFields); err != nil || len(twice) > 0 {
		return nil, ErrKey
	}
	id, _ := once["kid"].(string)
	key := k[id]
	if _, critical := once["crit"]; critical || key == nil || !slices.Contains(key.algorithms, t.Method.Alg()) {
		return nil, ErrKey
	}
	return key.public, nil
}

// claims are those of kube-apiserver's ServiceAccount tokens (KEP-1205, KEP-6060).
type claims struct {
	jwt.RegisteredClaims
	Kubernetes kubernetesClaims `json:"kubernetes.io"`
}

type kubernetesClaims struct {
	Attestations map[string][]string `json:"attestations"`
}

// attestedGroups is the attestation of k8s.io/api/authentication/v1 of that name.
const attestedGroups = "admissionReviewAPIGroups"

// group returns the API group that is attested. There must be one, and only one.
func (c *claims) group() (group string, ok bool) {
	groups := c.Kubernetes.Attestations[attestedGroups]
	if len(groups) != 1 || groups[0] == "" {
		return "", false
	}
	return groups[0], true
}

// UnmarshalJSON takes no claim that is there twice, or is spelt in another case.
func (c *claims) UnmarshalJSON(data []byte) error {
	type plain claims
	strict, err := json.UnmarshalStrict(data, (*plain)(c), json.DisallowDuplicateFields)
	return errors.Join(append(strict, err)...)
}
