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
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/internal/trust"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// compileClusters compiles every cluster that is valid on its own, and the
// index of their credentials.
func (c *compiler) compileClusters() {
	c.ids = newIdentities()
	for i := range c.objects.Clusters {
		m := &c.objects.Clusters[i]
		before := len(c.problems)
		c.problem(m.Problems(validateCluster(&m.ClusterObject))...)
		cluster := &chain.Cluster{
			Name:         m.Name,
			Labels:       m.Labels,
			Anonymous:    m.Spec.Authentication.Anonymous,
			RequestBytes: m.Spec.Limits.RequestBytes,
			Bypass:       compileRules(c.Bypass, &m.Spec.Bypass),
			FailOpen:     compileRules(c.FailOpen, &m.Spec.FailOpen),
			Namespaces:   c.compileNamespaceSource(m),
		}
		cluster.Declared, _ = chain.ParseKubernetesVersion(m.Spec.KubernetesVersion) // validated above; none is unknown
		if s := m.Spec.TimeoutSeconds; s != nil {
			cluster.Timeout = time.Duration(*s) * time.Second
		}
		c.claimIdentities(m, cluster)
		if len(c.problems) == before {
			c.clusters = append(c.clusters, cluster)
		}
	}
	c.ids.index()
}

// compileRules puts the process's rules and the cluster's own together.
func compileRules(inherited []exempt.Rule, list *manifest.RequestRuleList) exempt.Rules {
	if list.Inherit != nil && !*list.Inherit {
		inherited = nil
	}
	return exempt.Compile(slices.Concat(inherited, list.Rules))
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
	bundle, err := c.files.Read(m.Origin, name)
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
			known[name] = &claims{pinned: map[string][]claim{}}
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
		key := string(pin.RawSubjectPublicKeyInfo)
		for _, other := range c.pinned[key] {
			if sameCA(other.pin, pin) {
				others[other.cluster] = true
			}
		}
		c.pinned[key] = append(c.pinned[key], claim{own.cluster, pin})
		c.pins = append(c.pins, pin)
	}
	if len(own.pins) == 0 {
		for _, pinned := range c.pinned {
			for _, other := range pinned {
				others[other.cluster] = true
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
