// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"
)

// Credentials are what a cluster's kube-apiserver can present.
type Credentials struct {
	Certificate, Token bool
	PathSecrets        []PathSecretSum
}

// PathSecretSum is the SHA-256 sum of a path secret. The secret itself is never kept.
type PathSecretSum [sha256.Size]byte

// The length of a path secret, in bytes. 32 hexadecimal digits are 128 random bits.
const (
	MinPathSecret = 32
	MaxPathSecret = 128
)

// IsPathSecret reports whether b has the form of a path secret: MinPathSecret to
// MaxPathSecret lowercase letters and digits. A Service reference takes no other path, a
// secret has one spelling, and no other segment of a path that is routed is as long. What
// looks like a sum is none, so that nobody writes one for the other.
func IsPathSecret(b []byte) bool {
	hexadecimal := true
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
		hexadecimal = hexadecimal && c <= 'f'
	}
	return len(b) >= MinPathSecret && len(b) <= MaxPathSecret && !(hexadecimal && len(b) == hex.EncodedLen(sha256.Size))
}

// SumOfPathSecret returns the sum of a path secret.
func SumOfPathSecret(secret []byte) PathSecretSum { return sha256.Sum256(secret) }

// Has reports whether the secret is one of the path secrets. How long that takes tells
// something about sums, which help nobody to a secret.
func (c *Credentials) Has(secret []byte) bool {
	return IsPathSecret(secret) && slices.Contains(c.PathSecrets, SumOfPathSecret(secret))
}

// AcceptsFrom reports whether a connection from the address may be the cluster's. A
// cluster without SourceRanges accepts every address.
func (c *Cluster) AcceptsFrom(peer netip.Addr) bool {
	return len(c.SourceRanges) == 0 ||
		slices.ContainsFunc(c.SourceRanges, func(r netip.Prefix) bool { return r.Contains(peer) })
}
