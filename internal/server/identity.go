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
	return identify(snapshot, c, h)
}

// identify returns the cluster that the credentials of a request belong to, or nil:
// for a credential that nobody owns, for two that disagree, and for none at all unless
// the cluster named in the path takes anonymous callers. Host, SNI and other headers
// say nothing about who sends it (A18).
func identify(s *registry.Snapshot, c *conn, h *head) *chain.Cluster {
	certified := c.chains.Leaf() != nil
	switch {
	case certified && h.authorization.shown:
		return agreed(byCertificate(s, c.chains, c.arrived), byToken(s, h.authorization))
	case certified:
		return byCertificate(s, c.chains, c.arrived)
	case h.authorization.shown:
		return byToken(s, h.authorization)
	}
	return anonymous(s, h.route.cluster)
}

func agreed(a, b *chain.Cluster) *chain.Cluster {
	if a != b {
		return nil
	}
	return a
}

// byCertificate looks the certificate up. It may have expired since the
// handshake: connections live long.
func byCertificate(s *registry.Snapshot, chains trust.Chains, now time.Time) *chain.Cluster {
	if now.After(chains.Leaf().NotAfter) {
		return nil
	}
	return s.Clusters[s.ByCertificate(chains)]
}

func byToken(s *registry.Snapshot, a authorization) *chain.Cluster {
	if len(a.token) == 0 {
		return nil
	}
	return s.Clusters[s.ByToken(a.token)]
}

func anonymous(s *registry.Snapshot, named []byte) *chain.Cluster {
	if cluster := s.Clusters[string(named)]; cluster != nil && cluster.Anonymous {
		return cluster
	}
	return nil
}
