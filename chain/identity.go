// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"slices"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// APIServer is an API server of a cluster other than its kube-apiserver: one that serves
// API groups of its own and runs the same webhook plugins.
type APIServer struct {
	Name   string
	Groups []string // whose reviews it may send
}

// MaySend reports whether the review is about the server's own groups. Both resources
// count: what was matched and what the user asked for, which is the same where the review
// does not say (codec.Review), be there a requestKind or not. nil is the kube-apiserver, which
// may send any.
func (s *APIServer) MaySend(r *codec.Review) bool {
	if s == nil {
		return true
	}
	return s.serves(r.Resource.Group) && s.serves(r.RequestResource.Group)
}

func (s *APIServer) serves(group []byte) bool {
	return slices.ContainsFunc(s.Groups, func(own string) bool { return own == string(group) })
}

// Identity is whose a credential is. The zero Identity is nobody's.
type Identity struct {
	Cluster string     // name
	Server  *APIServer // nil: its kube-apiserver
}

// String names who it is as problems do.
func (i Identity) String() string {
	if i.Server == nil {
		return "Cluster/" + i.Cluster
	}
	return "caller " + i.Server.Name + " of Cluster/" + i.Cluster
}
