// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
)

// identities tells clusters by their credentials. It is read-only.
type identities struct {
	commonNames, dnsNames, uris map[string][]claim
	tokens                      []tokenClaim
}

// claim is a name in certificates that stands for a cluster, for those whose
// chain holds one of the pins.
type claim struct {
	cluster *Cluster
	pins    []*x509.Certificate // none: any verified chain
}

type tokenClaim struct {
	cluster *Cluster
	sum     [sha256.Size]byte
}

// ByCertificate returns the cluster that presents the verified chains, leaf
// first, by URI, DNS name or common name. It returns nil for a certificate that
// names none, or more than one.
func (s *Snapshot) ByCertificate(chains [][]*x509.Certificate) *Cluster {
	if len(chains) == 0 || len(chains[0]) == 0 {
		return nil
	}
	leaf := chains[0][0]
	found := one{chains: chains}
	for _, uri := range leaf.URIs {
		found.add(s.identities.uris[uri.String()])
	}
	for _, name := range leaf.DNSNames {
		found.add(s.identities.dnsNames[name])
	}
	found.add(s.identities.commonNames[leaf.Subject.CommonName])
	if found.several || found.cluster == nil {
		return nil
	}
	return s.Clusters[found.cluster.Name]
}

// one collects the clusters that claim the names of a certificate.
type one struct {
	chains  [][]*x509.Certificate
	cluster *Cluster
	several bool
}

func (o *one) add(claims []claim) {
	for _, c := range claims {
		if !c.holds(o.chains) {
			continue
		}
		o.several = o.several || (o.cluster != nil && o.cluster != c.cluster)
		o.cluster = c.cluster
	}
}

func (c claim) holds(chains [][]*x509.Certificate) bool {
	if len(c.pins) == 0 {
		return true
	}
	for _, chain := range chains {
		for _, certificate := range chain {
			if isPinned(c.pins, certificate) {
				return true
			}
		}
	}
	return false
}

func isPinned(pins []*x509.Certificate, certificate *x509.Certificate) bool {
	for _, pin := range pins {
		if sameCA(pin, certificate) {
			return true
		}
	}
	return false
}

// sameCA compares name and key, so that a CA whose certificate was renewed
// stays the same CA.
func sameCA(a, b *x509.Certificate) bool {
	return bytes.Equal(a.RawSubject, b.RawSubject) &&
		bytes.Equal(a.RawSubjectPublicKeyInfo, b.RawSubjectPublicKeyInfo)
}

// ByToken returns the cluster whose bearer token this is, or nil, in constant
// time for a given configuration.
func (s *Snapshot) ByToken(token []byte) *Cluster {
	sum := sha256.Sum256(token)
	found := -1
	for i := range s.identities.tokens {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], s.identities.tokens[i].sum[:]), i, found)
	}
	if found < 0 {
		return nil
	}
	return s.Clusters[s.identities.tokens[found].cluster.Name]
}
