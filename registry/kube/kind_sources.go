// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"crypto/sha256"
	"maps"
	"slices"
	"weak"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/chain"
	policyschema "github.com/admission-dispatcher/dispatcher/policy/schema"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// kinds is the part of Sources that has the types of kinds. The Sources' lock guards it, but
// for looks.
type kinds struct {
	open   []*Kinds
	looks  chan struct{}                                          // a place for each look under way
	shared map[[sha256.Size]byte]weak.Pointer[policyschema.Types] // by what they were read from
}

// Kinds returns the source that is open for this cluster and access, or else a new one, which
// the registry opens. It reads what is known to be asked for, too. It serves compile.Options.
func (s *Sources) Kinds(cluster string, access manifest.KubeAccess, known []schema.GroupVersion) chain.KindSource {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kinds.open {
		if k.cluster == cluster && k.access == access {
			k.want(known)
			return k
		}
	}
	s.made++
	return newKinds(s, s.made, cluster, access, known)
}

func (s *Sources) openedKinds(k *Kinds) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds.open = append(s.kinds.open, k)
}

func (s *Sources) closedKinds(k *Kinds) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds.open = slices.DeleteFunc(s.kinds.open, func(other *Kinds) bool { return other == k })
}

// shared returns the types that somebody has of the same bytes, or else these.
func (s *Sources) shared(sum [sha256.Size]byte, types *policyschema.Types) *policyschema.Types {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.kinds.shared, func(_ [sha256.Size]byte, t weak.Pointer[policyschema.Types]) bool { return t.Value() == nil })
	if known := s.kinds.shared[sum].Value(); known != nil {
		return known
	}
	if s.kinds.shared == nil {
		s.kinds.shared = map[[sha256.Size]byte]weak.Pointer[policyschema.Types]{}
	}
	s.kinds.shared[sum] = weak.Make(types)
	return types
}
