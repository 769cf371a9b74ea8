// SPDX-License-Identifier: Apache-2.0

package celenv

// maxYoung is how many expressions a generation of the cache holds: more than
// any registry has, and bounded, because registries change and what they once
// said must not be kept for ever.
const maxYoung = 10_000

// cache holds compiled expressions in two generations. When the young one is
// full it becomes the old one, and what was not asked for since is forgotten.
// The zero value is empty.
type cache struct{ young, old map[source]compiled }

// compiled is what became of an expression; failures are remembered too.
type compiled struct {
	condition *Condition
	err       error
}

func (c *cache) find(expression source) (compiled, bool) {
	if found, ok := c.young[expression]; ok {
		return found, true
	}
	found, ok := c.old[expression]
	if ok {
		c.add(expression, found)
	}
	return found, ok
}

func (c *cache) add(expression source, done compiled) {
	if c.young == nil || len(c.young) >= maxYoung {
		c.young, c.old = map[source]compiled{}, c.young
	}
	c.young[expression] = done
}
