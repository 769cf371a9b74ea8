// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/internal/trust"
	"github.com/admission-dispatcher/dispatcher/registry"
)

// credentials are what a request shows. Host, SNI and other headers say nothing
// about who sends it (A18).
type credentials struct {
	chains        trust.Chains // without a leaf: no certificate
	authorization [][]byte     // the values of the header; borrowed from the request
}

// caller returns the cluster that a request comes from, as far as its credentials
// say, wherever it wants to go; nil where that is nobody.
func (s *Server) caller(ctx *fasthttp.RequestCtx) *chain.Cluster {
	snapshot := s.cfg.Snapshot()
	if snapshot == nil {
		return nil
	}
	defer snapshot.Release()
	h, c := &ctx.Request.Header, connOf(ctx)
	path, _ := splitURI(h.RequestURI())
	route, _ := parseRoute(path)
	return identify(snapshot, credentials{c.chains, h.PeekAll(fasthttp.HeaderAuthorization)}, route.cluster, c.arrived)
}

// identify returns the cluster that the credentials belong to, or nil: for a
// credential that nobody owns, for two that disagree, and for none at all unless
// the cluster named in the path takes anonymous callers.
func identify(s *registry.Snapshot, c credentials, named []byte, now time.Time) *chain.Cluster {
	certified := c.chains.Leaf() != nil
	switch {
	case certified && len(c.authorization) > 0:
		return agreed(byCertificate(s, c.chains, now), byToken(s, c.authorization))
	case certified:
		return byCertificate(s, c.chains, now)
	case len(c.authorization) > 0:
		return byToken(s, c.authorization)
	}
	return anonymous(s, named)
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
	return s.ByCertificate(chains)
}

const bearer = "Bearer "

func byToken(s *registry.Snapshot, authorization [][]byte) *chain.Cluster {
	value := authorization[0]
	if len(authorization) > 1 || len(value) <= len(bearer) || !bytes.EqualFold(value[:len(bearer)], []byte(bearer)) {
		return nil
	}
	return s.ByToken(value[len(bearer):])
}

func anonymous(s *registry.Snapshot, named []byte) *chain.Cluster {
	if cluster := s.Clusters[string(named)]; cluster != nil && cluster.Anonymous {
		return cluster
	}
	return nil
}
