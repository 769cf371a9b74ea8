// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/internal/trust"
	"github.com/admission-dispatcher/dispatcher/registry"
)

// caller returns the cluster that a request comes from, as far as its credentials
// say, wherever it wants to go; nil where that is nobody.
func caller(current func() *registry.Snapshot, c *conn, h *head) *chain.Cluster {
	snapshot := current()
	if snapshot == nil {
		return nil
	}
	defer snapshot.Release()
	cluster, _ := identify(snapshot, c, h)
	return cluster
}

// identify returns the cluster that the credentials of a request belong to, and which
// of its API servers; or nil: for a credential that nobody owns, for two that disagree,
// and for none at all unless the cluster named in the path takes anonymous callers. A path
// secret is of all API servers of a cluster: beside it, a certificate or token says which
// of them it is. Host, SNI and other headers say nothing about who sends it (A18).
func identify(s *registry.Snapshot, c *conn, h *head) (*chain.Cluster, *chain.APIServer) {
	var who chain.Identity
	certified, secret := c.chains.Leaf() != nil, len(h.route.secret) > 0
	switch {
	case certified && h.authorization.shown:
		who = agreed(byCertificate(s, c.chains, c.arrived), byToken(s, c, h))
	case certified:
		who = byCertificate(s, c.chains, c.arrived)
	case h.authorization.shown:
		who = byToken(s, c, h)
	case secret:
		who.Cluster = s.ByPathSecret(h.route.secret)
	default:
		return anonymous(s, h.route.cluster), nil
	}
	if secret && s.ByPathSecret(h.route.secret) != who.Cluster {
		return nil, nil // the two disagree about the cluster; a path secret says no more than that
	}
	return s.Clusters[who.Cluster], who.Server
}

func agreed(a, b chain.Identity) chain.Identity {
	if a != b {
		return chain.Identity{}
	}
	return a
}

// byCertificate looks the certificate up. It may have expired since the
// handshake: connections live long.
func byCertificate(s *registry.Snapshot, chains trust.Chains, now time.Time) chain.Identity {
	if now.After(chains.Leaf().NotAfter) {
		return chain.Identity{}
	}
	return s.ByCertificate(chains)
}

// byToken looks the token up, once for a request: who is refused is looked up again for
// the record, and no request costs more than one signature.
func byToken(s *registry.Snapshot, c *conn, h *head) chain.Identity {
	a := &h.authorization
	if len(a.token) > 0 && !a.judged {
		a.bearer, a.defect = s.ByToken(a.token, h.route.cluster, c.arrived)
		a.judged = true
	}
	return a.bearer
}

func anonymous(s *registry.Snapshot, named []byte) *chain.Cluster {
	if cluster := s.Clusters[string(named)]; cluster != nil && cluster.Anonymous {
		return cluster
	}
	return nil
}
