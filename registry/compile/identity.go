// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/internal/trust"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// identities tells clusters, by their names, by their credentials. It is read-only.
type identities struct {
	commonNames, dnsNames, uris map[string]*claims
	tokens                      map[[sha256.Size]byte]string
	anonymous                   string // that needs none; "": none is
}

// claims are the clusters that one name in certificates stands for.
type claims struct {
	free   []string               // for any authority of the process
	pinned map[authority][]string // for their own ones
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
func (i *identities) Authorities(leaf *x509.Certificate, process *trust.Authorities) trust.Sets {
	var sets trust.Sets
	for _, name := range i.claimed(nil, leaf) {
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
// DNS name or common name. It returns "" for a certificate that names none, or
// more than one.
func (i *identities) ByCertificate(chains trust.Chains) string {
	leaf := chains.Leaf()
	if leaf == nil {
		return ""
	}
	var found one
	var few [maxClaims]*claims
	for _, name := range i.claimed(few[:0], leaf) {
		if len(chains.Process) > 0 {
			for _, cluster := range name.free {
				found.add(cluster)
			}
		}
		name.signed(chains.Process, &found)
		name.signed(chains.Cluster, &found)
	}
	if found.several {
		return ""
	}
	return found.cluster
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
	cluster string
	several bool
}

func (o *one) add(cluster string) {
	o.several = o.several || (o.cluster != "" && o.cluster != cluster)
	o.cluster = cluster
}

// ByToken returns the cluster whose bearer token this is, or "". How long that
// takes tells something about the sums of tokens, which help nobody to a token.
func (i *identities) ByToken(token []byte) string { return i.tokens[sha256.Sum256(token)] }

// claim enters the cluster's credentials, with the authorities that it pins, and
// reports those that another cluster has (E11).
func (i *identities) claim(m *manifest.Cluster, pins []*x509.Certificate) (problems []manifest.Problem) {
	at := field.NewPath("spec", "authentication")
	shared := func(at *field.Path, value, other string) {
		problems = append(problems, m.Problem(at, value, "is also an identity of Cluster/"+other))
	}
	a := &m.Spec.Authentication
	if a.Anonymous {
		if i.anonymous = cmp.Or(i.anonymous, m.Name); i.anonymous != m.Name {
			shared(at.Child("anonymous"), "true", i.anonymous)
		}
	}
	for n, sum := range a.BearerTokenSHA256 {
		if other := i.claimToken(sum, m.Name); other != m.Name {
			shared(at.Child("bearerTokenSHA256").Index(n), sum[:8]+"...", other)
		}
	}
	if a.Certificate == nil {
		return problems
	}
	for _, kind := range []struct {
		known map[string]*claims
		names []string
		field string
	}{
		{i.commonNames, a.Certificate.CommonNames, "commonNames"},
		{i.dnsNames, a.Certificate.DNSNames, "dnsNames"},
		{i.uris, a.Certificate.URIs, "uris"},
	} {
		for n, name := range kind.names {
			if kind.known[name] == nil {
				kind.known[name] = &claims{pinned: map[authority][]string{}}
			}
			for _, other := range kind.known[name].enter(m.Name, pins) {
				shared(at.Child("certificate", kind.field).Index(n), name, other)
			}
		}
	}
	return problems
}

// claimToken enters the sum of a token, if nobody has it, and returns who does.
func (i *identities) claimToken(sum, cluster string) string {
	if !isSHA256(sum) {
		return cluster
	}
	var key [sha256.Size]byte
	_, _ = hex.Decode(key[:], []byte(sum)) // validated above
	i.tokens[key] = cmp.Or(i.tokens[key], cluster)
	return i.tokens[key]
}

// enter enters the claim of a cluster, for its own authorities if it pins any, and
// returns the clusters that a certificate could stand for as well. Two may have one
// name only if each pins it to authorities of its own.
func (c *claims) enter(own string, pins []*x509.Certificate) []string {
	others := map[string]bool{}
	for _, other := range c.free {
		others[other] = true
	}
	for _, pin := range pins {
		key := authority{string(pin.RawSubject), string(pin.RawSubjectPublicKeyInfo)}
		for _, other := range c.pinned[key] {
			others[other] = true
		}
		c.pinned[key] = append(c.pinned[key], own)
		c.pins = append(c.pins, pin)
	}
	if len(pins) == 0 {
		for _, pinned := range c.pinned {
			for _, other := range pinned {
				others[other] = true
			}
		}
		c.free = append(c.free, own)
	}
	delete(others, own)
	return slices.Sorted(maps.Keys(others))
}

func newIdentities() identities {
	return identities{
		commonNames: map[string]*claims{},
		dnsNames:    map[string]*claims{},
		uris:        map[string]*claims{},
		tokens:      map[[sha256.Size]byte]string{},
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
