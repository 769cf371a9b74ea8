// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/internal/trust"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// identities tells clusters by their credentials. It is read-only.
type identities struct {
	commonNames, dnsNames, uris map[string]*claims
	tokens                      map[[sha256.Size]byte]*chain.Cluster
}

// claims are the clusters that one name in certificates stands for.
type claims struct {
	free   []*chain.Cluster               // for any authority of the process
	pinned map[authority][]*chain.Cluster // for their own ones
	pins   []*x509.Certificate
	own    *trust.Authorities // pins, indexed
}

// authority is the raw name and public key of a CA: one whose certificate was renewed
// stays the same CA.
type authority struct{ subject, key string }

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
			for _, cluster := range c.pinned[authority{string(certificate.RawSubject), string(certificate.RawSubjectPublicKeyInfo)}] {
				found.add(cluster)
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

// ByToken returns the cluster whose bearer token this is, or nil. How long that
// takes tells something about the sums of tokens, which help nobody to a token.
func (c *Compiled) ByToken(token []byte) *chain.Cluster {
	if known := c.identities.tokens[sha256.Sum256(token)]; known != nil {
		return c.Clusters[known.Name]
	}
	return nil
}

// claimIdentities enters the cluster's credentials and reports those that
// another cluster has (E11).
func (c *compiler) claimIdentities(m *manifest.Cluster, cluster *chain.Cluster) {
	at := field.NewPath("spec", "authentication")
	a := &m.Spec.Authentication
	if a.Anonymous {
		c.claimAnonymous(m, at.Child("anonymous"))
	}
	for i, sum := range a.BearerTokenSHA256 {
		c.claimToken(m, cluster, sum, at.Child("bearerTokenSHA256").Index(i))
	}
	if a.Certificate == nil {
		return
	}
	at = at.Child("certificate")
	own := nameClaim{m, cluster, c.readPins(m, at.Child("caFile"))}
	c.claimNames(c.ids.commonNames, a.Certificate.CommonNames, own, at.Child("commonNames"))
	c.claimNames(c.ids.dnsNames, a.Certificate.DNSNames, own, at.Child("dnsNames"))
	c.claimNames(c.ids.uris, a.Certificate.URIs, own, at.Child("uris"))
}

func (c *compiler) readPins(m *manifest.Cluster, at *field.Path) []*x509.Certificate {
	name := m.Spec.Authentication.Certificate.CAFile
	if name == "" {
		return nil
	}
	bundle, err := c.in.File(m.Origin, name)
	if err != nil {
		c.problem(unreadable(m.Origin, at, name, err))
		return nil
	}
	return c.checkCA(m.Origin, at, bundle)
}

func (c *compiler) claimAnonymous(m *manifest.Cluster, at *field.Path) {
	for _, other := range c.clusters {
		if other.Anonymous {
			c.problem(sharedIdentity(m, at, "true", other))
		}
	}
}

func (c *compiler) claimToken(m *manifest.Cluster, cluster *chain.Cluster, sum string, at *field.Path) {
	if !isSHA256(sum) {
		return
	}
	var key [sha256.Size]byte
	_, _ = hex.Decode(key[:], []byte(sum)) // validated above
	if other := c.ids.tokens[key]; other != nil && other != cluster {
		c.problem(sharedIdentity(m, at, sum[:8]+"...", other))
		return
	}
	c.ids.tokens[key] = cluster
}

// nameClaim is a cluster that claims names, for its own authorities if it pins
// any.
type nameClaim struct {
	manifest *manifest.Cluster
	cluster  *chain.Cluster
	pins     []*x509.Certificate
}

// claimNames enters names of certificates. Two clusters may have one name only
// if each pins it to CAs of its own.
func (c *compiler) claimNames(known map[string]*claims, names []string, own nameClaim, at *field.Path) {
	for i, name := range names {
		if known[name] == nil {
			known[name] = &claims{pinned: map[authority][]*chain.Cluster{}}
		}
		for _, other := range known[name].enter(own) {
			c.problem(sharedIdentity(own.manifest, at.Index(i), name, other))
		}
	}
}

// enter enters a claim and returns the clusters that a certificate could stand
// for as well.
func (c *claims) enter(own nameClaim) []*chain.Cluster {
	others := map[*chain.Cluster]bool{}
	for _, other := range c.free {
		others[other] = true
	}
	for _, pin := range own.pins {
		key := authority{string(pin.RawSubject), string(pin.RawSubjectPublicKeyInfo)}
		for _, other := range c.pinned[key] {
			others[other] = true
		}
		c.pinned[key] = append(c.pinned[key], own.cluster)
		c.pins = append(c.pins, pin)
	}
	if len(own.pins) == 0 {
		for _, pinned := range c.pinned {
			for _, other := range pinned {
				others[other] = true
			}
		}
		c.free = append(c.free, own.cluster)
	}
	delete(others, own.cluster)
	return slices.SortedFunc(maps.Keys(others), func(a, b *chain.Cluster) int { return strings.Compare(a.Name, b.Name) })
}

func newIdentities() identities {
	return identities{
		commonNames: map[string]*claims{},
		dnsNames:    map[string]*claims{},
		uris:        map[string]*claims{},
		tokens:      map[[sha256.Size]byte]*chain.Cluster{},
	}
}

// index completes the claims when all of them are in.
func (i *identities) index() {
	for _, known := range []map[string]*claims{i.commonNames, i.dnsNames, i.uris} {
		for _, c := range known {
			if len(c.pins) > 0 {
				c.own = trust.NewAuthorities(c.pins)
			}
		}
	}
}

func sharedIdentity(m *manifest.Cluster, at *field.Path, value string, other *chain.Cluster) manifest.Problem {
	return m.Problem(at, value, fmt.Sprintf("is also an identity of Cluster/%s", other.Name))
}
