// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-dispatcher/dispatcher/match"
)

// compileClusters compiles every cluster that is valid on its own, and the
// index of their credentials.
func (c *compiler) compileClusters() {
	c.ids = identities{commonNames: map[string][]claim{}, dnsNames: map[string][]claim{}, uris: map[string][]claim{}}
	for i := range c.objects.clusters {
		m := &c.objects.clusters[i]
		before := len(c.problems)
		c.problem(m.problems(validateCluster(&m.ClusterObject))...)
		cluster := &Cluster{
			Name:         m.Name,
			Labels:       m.Labels,
			Anonymous:    m.Spec.Authentication.Anonymous,
			RequestBytes: m.Spec.Limits.RequestBytes,
			Bypass:       compileRules(c.settings.Bypass, &m.Spec.Bypass),
			FailOpen:     compileRules(c.settings.FailOpen, &m.Spec.FailOpen),
			Namespaces:   c.compileSource(m),
		}
		if s := m.Spec.TimeoutSeconds; s != nil {
			cluster.Timeout = time.Duration(*s) * time.Second
		}
		c.claimIdentities(m, cluster)
		if len(c.problems) == before {
			c.clusters = append(c.clusters, cluster)
		}
	}
}

// compileRules puts the process's rules and the cluster's own together.
func compileRules(inherited []match.RequestRule, list *RequestRuleList) match.RequestRules {
	if list.Inherit != nil && !*list.Inherit {
		inherited = nil
	}
	return match.CompileRequestRules(slices.Concat(inherited, list.Rules))
}

// claimIdentities enters the cluster's credentials and reports those that
// another cluster has (E11).
func (c *compiler) claimIdentities(m *clusterManifest, cluster *Cluster) {
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
	own := claim{cluster: cluster, pins: c.readPins(m, at.Child("caFile"))}
	c.claimNames(m, c.ids.commonNames, a.Certificate.CommonNames, own, at.Child("commonNames"))
	c.claimNames(m, c.ids.dnsNames, a.Certificate.DNSNames, own, at.Child("dnsNames"))
	c.claimNames(m, c.ids.uris, a.Certificate.URIs, own, at.Child("uris"))
}

func (c *compiler) readPins(m *clusterManifest, at *field.Path) []*x509.Certificate {
	name := m.Spec.Authentication.Certificate.CAFile
	if name == "" {
		return nil
	}
	bundle, err := c.files.read(m.origin, name)
	if err != nil {
		c.problem(unreadable(m.origin, at, name, err))
		return nil
	}
	return c.checkCA(m.origin, at, bundle)
}

func (c *compiler) claimAnonymous(m *clusterManifest, at *field.Path) {
	for _, other := range c.clusters {
		if other.Anonymous {
			c.problem(sharedIdentity(m, at, "true", other))
		}
	}
}

func (c *compiler) claimToken(m *clusterManifest, cluster *Cluster, sum string, at *field.Path) {
	if !isSHA256(sum) {
		return
	}
	own := tokenClaim{cluster: cluster}
	_, _ = hex.Decode(own.sum[:], []byte(sum)) // validated above
	for _, other := range c.ids.tokens {
		if other.sum == own.sum && other.cluster != cluster {
			c.problem(sharedIdentity(m, at, sum[:8]+"...", other.cluster))
			return
		}
	}
	c.ids.tokens = append(c.ids.tokens, own)
}

// claimNames enters names of certificates. Two clusters may have one name only
// if each pins it to CAs of its own.
func (c *compiler) claimNames(m *clusterManifest, known map[string][]claim, names []string, own claim, at *field.Path) {
	for i, name := range names {
		for _, other := range known[name] {
			if other.cluster != own.cluster && overlap(other.pins, own.pins) {
				c.problem(sharedIdentity(m, at.Index(i), name, other.cluster))
			}
		}
		known[name] = append(known[name], own)
	}
}

// overlap reports whether one chain may hold both pins.
func overlap(a, b []*x509.Certificate) bool {
	if len(a) == 0 || len(b) == 0 {
		return true
	}
	return slices.ContainsFunc(a, func(c *x509.Certificate) bool { return isPinned(b, c) })
}

func sharedIdentity(m *clusterManifest, at *field.Path, value string, other *Cluster) Problem {
	return m.problem(at, value, fmt.Sprintf("is also an identity of Cluster/%s", other.Name))
}
