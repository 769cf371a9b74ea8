// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"

	"github.com/admission-dispatcher/dispatcher/chain"
)

// route is what a path asks for.
type route struct {
	cluster []byte // borrowed from the request
	phase   chain.Phase
	segment []byte // says which webhooks are considered; empty: all. Borrowed
}

const clustersPath = "/v1/clusters/"

// parseRoute reads the path as it was sent: nothing is decoded, nothing cleaned
// up, so that no two spellings name one cluster (A6).
func parseRoute(path []byte) (r route, ok bool) {
	rest, ok := bytes.CutPrefix(path, []byte(clustersPath))
	if !ok {
		return route{}, false
	}
	cluster, rest, ok := bytes.Cut(rest, []byte("/"))
	if !ok || !isName(cluster) {
		return route{}, false
	}
	phase, segment, further := bytes.Cut(rest, []byte("/"))
	if further && !chain.IsPathSegment(segment) {
		return route{}, false
	}
	switch string(phase) {
	case chain.Validating.String():
		return route{cluster, chain.Validating, segment}, true
	case chain.Mutating.String():
		return route{cluster, chain.Mutating, segment}, true
	}
	return route{}, false
}

// isName tells what the name of a Cluster is made of.
func isName(b []byte) bool {
	for _, c := range b {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '.':
		default:
			return false
		}
	}
	return len(b) > 0
}

// splitURI cuts a request target into path and query.
func splitURI(uri []byte) (path, query []byte) {
	path, query, _ = bytes.Cut(uri, []byte("?"))
	return path, query
}
