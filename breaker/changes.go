// SPDX-License-Identifier: Apache-2.0

package breaker

// change is one change of state of one circuit.
type change struct {
	resource string
	from, to State
}

// changes are those not told yet.
type changes struct {
	untold []change
}

func (c *changes) add(one change) { c.untold = append(c.untold, one) }

// take returns those not told yet, for the caller to tell.
func (c *changes) take() []change {
	untold := c.untold
	c.untold = nil
	return untold
}
