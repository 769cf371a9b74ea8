// SPDX-License-Identifier: Apache-2.0

package chain

// Probe says what a new webhook waits for.
type Probe uint8

// The values of Probe.
const (
	ProbeConnect Probe = iota // an endpoint that accepts a TLS connection
	ProbeReview               // one that answers a dry-run review too
	ProbeSkip                 // nothing
)

// Probes are all of them, as a WebhookBinding spells them.
var Probes = [...]string{ProbeConnect: "Connect", ProbeReview: "Review", ProbeSkip: "Skip"}

func (p Probe) String() string { return Probes[p] }

// Join says when a new webhook takes part.
type Join uint8

// The values of Join.
const (
	JoinEnforce   Join = iota // at once: its failure policy decides until it answers
	JoinWhenReady             // when it has answered a probe; until then it is visibly not called
)

// Joins are all of them, as a WebhookBinding spells them.
var Joins = [...]string{JoinEnforce: "Enforce", JoinWhenReady: "WhenReady"}

func (j Join) String() string { return Joins[j] }
