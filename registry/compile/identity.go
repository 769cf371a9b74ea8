// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/internal/trust"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// identities tells clusters, and their callers, by their credentials. It is read-only, but
// for the tokens that bearers remember.
type identities struct {
	commonNames, dnsNames, uris map[string]*claims
	tokens                      map[[sha256.Size]byte]chain.Identity
	pathSecrets                 map[chain.PathSecretSum]string // whose they are: the cluster's name
	bearers                     map[string]*bearers            // of clusters, by name
	keys                        map[[sha256.Size]byte]string   // of all bearers: the cluster
	anonymous                   string                         // the cluster that needs none; "": none is
}

// claims are who one name in certificates stands for.
type claims struct {
	free   []chain.Identity               // for any authority of the process
	pinned map[authority][]chain.Identity // for their own ones
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

// ByCertificate returns who presents the verified chains, by URI, DNS name or common
// name. A certificate that names nobody, or more than one, is nobody's.
func (i *identities) ByCertificate(chains trust.Chains) chain.Identity {
	leaf := chains.Leaf()
	if leaf == nil {
		return chain.Identity{}
	}
	var found one
	var few [maxClaims]*claims
	for _, name := range i.claimed(few[:0], leaf) {
		if len(chains.Process) > 0 {
			for _, who := range name.free {
				found.add(who)
			}
		}
		name.signed(chains.Process, &found)
		name.signed(chains.Cluster, &found)
	}
	if found.several {
		return chain.Identity{}
	}
	return found.who
}

// signed adds those one of whose authorities is in a chain.
func (c *claims) signed(chains [][]*x509.Certificate, found *one) {
	for _, certificates := range chains {
		for _, certificate := range certificates {
			for _, who := range c.pinned[authority{string(certificate.RawSubject), string(certificate.RawSubjectPublicKeyInfo)}] {
				found.add(who)
			}
		}
	}
}

// one collects who claims the names of a certificate.
type one struct {
	who     chain.Identity
	several bool
}

func (o *one) add(who chain.Identity) {
	o.several = o.several || (o.who != chain.Identity{} && o.who != who)
	o.who = who
}

// ByToken returns whose bearer token this is, at now. A token by its sum is found whatever
// the path names; a JSON Web Token must be one of the cluster that it names, so that no
// request costs more than one signature. The error says why a JSON Web Token is not good. How
// long a lookup takes tells something about the sums of tokens, which help nobody to a token.
func (i *identities) ByToken(token, cluster []byte, now time.Time) (chain.Identity, error) {
	sum := sha256.Sum256(token)
	if who, known := i.tokens[sum]; known {
		return who, nil
	}
	if b := i.bearers[string(cluster)]; b != nil {
		return b.identify(token, sum, now)
	}
	return chain.Identity{}, nil
}

// ByPathSecret returns the name of the cluster whose path secret this is, or "". It hashes
// what is shown and looks for the sum: how long that takes tells nothing of a secret.
func (i *identities) ByPathSecret(secret []byte) string {
	return i.pathSecrets[chain.SumOfPathSecret(secret)]
}

// claim enters the credentials of somebody of the cluster at the path, with the
// authorities that are pinned for him, and reports those that another one has (E11).
func (i *identities) claim(m *manifest.Cluster, who chain.Identity, c credential, pins []*x509.Certificate) (problems []manifest.Problem) {
	shared := func(at *field.Path, value string, other chain.Identity) {
		problems = append(problems, m.Problem(at, value, "is also an identity of "+other.String()))
	}
	for n, sum := range c.tokens {
		if other := i.claimToken(sum, who); other != who {
			shared(c.at.Child("bearerTokenSHA256").Index(n), sum[:8]+"...", other)
		}
	}
	if c.certificate == nil {
		return problems
	}
	for _, kind := range []struct {
		known map[string]*claims
		names []string
		field string
	}{
		{i.commonNames, c.certificate.CommonNames, "commonNames"},
		{i.dnsNames, c.certificate.DNSNames, "dnsNames"},
		{i.uris, c.certificate.URIs, "uris"},
	} {
		for n, name := range kind.names {
			if kind.known[name] == nil {
				kind.known[name] = &claims{pinned: map[authority][]chain.Identity{}}
			}
			for _, other := range kind.known[name].enter(who, pins) {
				shared(c.at.Child("certificate", kind.field).Index(n), name, other)
			}
		}
	}
	return problems
}

// claimAnonymous enters the cluster as the one that needs no credential.
func (i *identities) claimAnonymous(m *manifest.Cluster) (problems []manifest.Problem) {
	if i.anonymous = cmp.Or(i.anonymous, m.Name); i.anonymous != m.Name {
		at := field.NewPath("spec", "authentication", "anonymous")
		problems = append(problems, m.Problem(at, "true", "is also an identity of Cluster/"+i.anonymous))
	}
	return problems
}

// claimPathSecrets enters the sums of path secrets, and reports those that another cluster
// has, or its own twice.
func (i *identities) claimPathSecrets(m *manifest.Cluster, sums []string, at *field.Path) (problems []manifest.Problem) {
	for n, sum := range sums {
		if !isSHA256(sum) {
			continue
		}
		key := sumOf(sum)
		if other := i.pathSecrets[key]; other != "" {
			problems = append(problems, m.Problem(at.Index(n), sum[:8]+"...", "is also an identity of Cluster/"+other))
			continue
		}
		i.pathSecrets[key] = m.Name
	}
	return problems
}

// sumOf returns what a valid sum says.
func sumOf(sum string) (key [sha256.Size]byte) {
	_, _ = hex.Decode(key[:], []byte(sum))
	return key
}

// claimToken enters the sum of a token, if nobody has it, and returns who does.
func (i *identities) claimToken(sum string, who chain.Identity) chain.Identity {
	if !isSHA256(sum) {
		return who
	}
	key := sumOf(sum)
	i.tokens[key] = cmp.Or(i.tokens[key], who)
	return i.tokens[key]
}

// enter enters a claim, for the own authorities if there are any, and returns, by name,
// for whom a certificate could stand as well. Two may have one name only if each pins
// it to authorities of its own.
func (c *claims) enter(who chain.Identity, pins []*x509.Certificate) []chain.Identity {
	others := map[chain.Identity]bool{}
	for _, other := range c.free {
		others[other] = true
	}
	for _, pin := range pins {
		key := authority{string(pin.RawSubject), string(pin.RawSubjectPublicKeyInfo)}
		for _, other := range c.pinned[key] {
			others[other] = true
		}
		c.pinned[key] = append(c.pinned[key], who)
		c.pins = append(c.pins, pin)
	}
	if len(pins) == 0 {
		for _, pinned := range c.pinned {
			for _, other := range pinned {
				others[other] = true
			}
		}
		c.free = append(c.free, who)
	}
	delete(others, who)
	return slices.SortedFunc(maps.Keys(others), func(a, b chain.Identity) int { return cmp.Compare(a.String(), b.String()) })
}

func newIdentities() identities {
	return identities{
		commonNames: map[string]*claims{},
		dnsNames:    map[string]*claims{},
		uris:        map[string]*claims{},
		tokens:      map[[sha256.Size]byte]chain.Identity{},
		pathSecrets: map[chain.PathSecretSum]string{},
		bearers:     map[string]*bearers{},
		keys:        map[[sha256.Size]byte]string{},
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
