// SPDX-License-Identifier: Apache-2.0

package status

import (
	"github.com/admission-dispatcher/dispatcher/transport"
)

// Samples returns how many samples there are of a Target.
func (c *Collector) Samples(t *transport.Target) int { return len(c.latencies.of(t)) }
