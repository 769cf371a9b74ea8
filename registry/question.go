// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// Question is what a probe asks a Target beside a connection: a dry-run review, as
// this webhook of this cluster.
type Question struct {
	Cluster string
	Phase   chain.Phase
	Webhook *chain.Entry
}

// question returns what the bindings of the webhooks at a Target want it to be
// asked; nil: nothing.
func (s *Snapshot) question(t *transport.Target) *Question {
	for name, c := range s.Clusters {
		for _, phase := range []chain.Phase{chain.Mutating, chain.Validating} {
			for _, w := range c.Chain(phase).Webhooks {
				if w.Target == t && w.Probe == chain.ProbeReview {
					return &Question{Cluster: name, Phase: phase, Webhook: w}
				}
			}
		}
	}
	return nil
}
