// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/internal/trust"
)

// identities tells clusters by their credentials. It is read-only.
type identities struct {
	commonNames, dnsNames, uris map[string]*claims
	tokens                      map[[sha256.Size]byte]*chain.Cluster
}

// claims are the clusters that one name in certificates stands for.
type claims struct {
	free   []*chain.Cluster   // for any authority of the process
	pinned map[string][]claim // for their own ones, by raw public key of the authority
	pins   []*x509.Certificate
	own    *trust.Authorities // pins, indexed
}

// claim is one authority that may sign a name for a cluster.
type claim struct {
	cluster *chain.Cluster
	pin     *x509.Certificate
}

// claimed appends the claims on each name of the certificate to list.
func (i *identities) claimed(list []*claims, leaf *x509.Certificate) []*claims {
	for _, uri := range leaf.URIs {
		list = appendKnown(list, i.uris[uri.String()])
	}
	for _, name := range leaf.DNSNames {
		list = appendKnown(list, i.dnsNames[name])
	}
	return appendKnown(list, i.commonNames[leaf.Subject.CommonName])
}

func appendKnown(list []*claims, c *claims) []*claims {
	if c == nil {
		return list
	}
	return append(list, c)
}

// maxClaims bounds the names of clusters in one certificate whose authorities
// are looked at.
const maxClaims = 8

// Authorities returns who may vouch for a client certificate: where all clusters
// whose name it bears pin authorities, these and no others; otherwise the
// process's, too.
func (c *Compiled) Authorities(leaf *x509.Certificate, process *trust.Authorities) trust.Sets {
	var sets trust.Sets
	for _, name := range c.identities.claimed(nil, leaf) {
		if len(name.free) > 0 {
			sets.Process = process
		}
		if name.own != nil && len(sets.Cluster) < maxClaims {
			sets.Cluster = append(sets.Cluster, name.own)
		}
	}
	if len(sets.Cluster) == 0 {
		sets.Process = process
	}
	sets.Renewed = process
	return sets
}

// ByCertificate returns the cluster that presents the verified chains by URI,
// DNS name or common name. It returns nil for a certificate that names none, or
// more than one.
func (c *Compiled) ByCertificate(chains trust.Chains) *chain.Cluster {
	leaf := chains.Leaf()
	if leaf == nil {
		return nil
	}
	var found one
	var few [maxClaims]*claims
	for _, name := range c.identities.claimed(few[:0], leaf) {
		if len(chains.Process) > 0 {
			for _, cluster := range name.free {
				found.add(cluster)
			}
		}
		name.signed(chains.Process, &found)
		name.signed(chains.Cluster, &found)
	}
	if found.several || found.cluster == nil {
		return nil
	}
	return c.Clusters[found.cluster.Name]
}

// signed adds the clusters one of whose authorities is in a chain.
func (c *claims) signed(chains [][]*x509.Certificate, found *one) {
	for _, chain := range chains {
		for _, certificate := range chain {
			for _, claim := range c.pinned[string(certificate.RawSubjectPublicKeyInfo)] {
				if sameCA(claim.pin, certificate) {
					found.add(claim.cluster)
				}
			}
		}
	}
}

// one collects the clusters that claim the names of a certificate.
type one struct {
	cluster *chain.Cluster
	several bool
}

func (o *one) add(cluster *chain.Cluster) {
	o.several = o.several || (o.cluster != nil && o.cluster != cluster)
	o.cluster = cluster
}

// sameCA compares name and key, so that a CA whose certificate was renewed
// stays the same CA.
func sameCA(a, b *x509.Certificate) bool {
	return bytes.Equal(a.RawSubject, b.RawSubject) &&
		bytes.Equal(a.RawSubjectPublicKeyInfo, b.RawSubjectPublicKeyInfo)
}

// ByToken returns the cluster whose bearer token this is, or nil. How long that
// takes tells something about the sums of tokens, which help nobody to a token.
func (c *Compiled) ByToken(token []byte) *chain.Cluster {
	if known := c.identities.tokens[sha256.Sum256(token)]; known != nil {
		return c.Clusters[known.Name]
	}
	return nil
}
