// SPDX-License-Identifier: Apache-2.0

package status

import (
	"github.com/admission-dispatcher/dispatcher/transport"
)

// Counts returns those of a cluster.
func (c *Collector) Counts(cluster string) Counts { return c.tallies.counts(cluster) }

// Samples returns how many samples there are of a Target.
func (c *Collector) Samples(t *transport.Target) int { return len(c.latencies.of(t)) }
