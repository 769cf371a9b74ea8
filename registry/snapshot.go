// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// Snapshot is everything that the configuration says, compiled: immutable, and
// one consistent whole.
type Snapshot struct {
	// Hash is a hex SHA-256 over the sources' content, and over what is pending.
	Hash     string
	Clusters map[string]*Cluster
	Warnings []Problem // lint
	Targets  []*webhook.Target
	Pending  []Pending // webhooks that are not called yet, or whose version of before is

	identities identities
	users      *atomic.Int64 // admissions that are decided by it
}

// shortHash is the length of a Snapshot's short name, in hex digits.
const shortHash = 12

// ShortHash returns the beginning of the Hash, for people.
func (s *Snapshot) ShortHash() string { return s.Hash[:min(shortHash, len(s.Hash))] }

// Phase is mutating or validating.
type Phase uint8

// The phases.
const (
	Validating Phase = iota
	Mutating
)

func (p Phase) String() string {
	if p == Mutating {
		return "mutate"
	}
	return "validate"
}

// Cluster is one caller with all that holds for it.
type Cluster struct {
	Name      string
	Labels    map[string]string
	Anonymous bool          // accepted without any credential
	Timeout   time.Duration // as this cluster registered us; 0: unknown
	// RequestBytes is the cluster's own limit of a request body; 0: the process's.
	RequestBytes int64
	Bypass       match.RequestRules
	FailOpen     match.RequestRules
	Namespaces   match.Namespaces // nil: only kubernetes.io/metadata.name is known
	Validating   *Chain
	Mutating     *Chain

	declared KubernetesVersion // zero: its source may know
}

// Chain returns the cluster's webhooks of one phase.
func (c *Cluster) Chain(p Phase) *Chain {
	if p == Mutating {
		return c.Mutating
	}
	return c.Validating
}

// Chain is the webhooks of one phase in the order in which they take part.
type Chain struct {
	Webhooks []*Webhook
	Index    *match.Index // over Webhooks
	// Paths are the URLs on which Webhooks are considered, each on one, in the order
	// in which the API server calls them; one without a segment where no two
	// conflict.
	Paths []*Path

	positions map[string]int // by PathID
}

// Webhook is one entry of a Configuration, compiled for one Cluster.
type Webhook struct {
	Name          string // as in the Configuration
	Configuration string
	PathID        string                                       // names it in the segments of Paths
	Rules         []admissionregistrationv1.RuleWithOperations // for explain
	Matcher       *match.Matcher
	Spec          match.Spec // what Matcher is compiled from; Rules are the same
	Bindings      []string   // names of the WebhookBindings whose globs select it
	Target        *webhook.Target
	FailurePolicy FailurePolicy
	SideEffects   SideEffects
	Reinvocation  bool // reinvocationPolicy: IfNeeded
	Timeout       time.Duration
	Mode          Mode
	Stage         Stage
	Compat        codec.Compatibility
	Repeat        webhook.Repeat // Safe as far as the class of side effects says
	Wire          webhook.Wire   // how reviews are written for it
	Probe         Probe
	Join          Join
	// Pending is why the webhook is not called yet: it is new, joins when it is
	// ready, and has not answered a probe. Nil for all others.
	Pending error
	// Version is the first of admissionReviewVersions that we speak; zero if none.
	Version codec.Version
}

// FailurePolicy says what a CallError means.
type FailurePolicy uint8

// The failure policies.
const (
	Fail FailurePolicy = iota
	Ignore
)

// SideEffects says what a call to the webhook may do besides answering.
type SideEffects uint8

// The side effect classes.
const (
	SideEffectsNone SideEffects = iota
	SideEffectsNoneOnDryRun
	SideEffectsSome
	SideEffectsUnknown
)

// Repeatable reports whether the webhook may be asked twice about one review.
func (s SideEffects) Repeatable(dryRun bool) bool {
	return s == SideEffectsNone || s == SideEffectsNoneOnDryRun && dryRun
}

// SupportsDryRun reports whether the webhook may be called in a dry run.
func (s SideEffects) SupportsDryRun() bool { return s <= SideEffectsNoneOnDryRun }

// Mode says how much a webhook's Outcome counts.
type Mode uint8

// The modes.
const (
	Enforce Mode = iota
	Warn         // a denial becomes a warning
	Shadow       // called and recorded; never decides, never delays
)

// Hedge says whether slow calls are asked twice.
type Hedge uint8

// The values of Hedge.
const (
	HedgeAuto Hedge = iota // where there are no side effects
	HedgeOn                // the same, and refused but for webhooks without any
	HedgeOff
)

// Probe says what a new webhook waits for.
type Probe uint8

// The values of Probe.
const (
	ProbeConnect Probe = iota // an endpoint that accepts a TLS connection
	ProbeSkip                 // nothing
	ProbeReview               // one that answers a dry-run review too
)

// Join says when a new webhook takes part.
type Join uint8

// The values of Join.
const (
	JoinEnforce   Join = iota // at once: its failure policy decides until it answers
	JoinWhenReady             // when it has answered a probe; until then it is visibly not called
)

// Stage says when a validating webhook is called.
type Stage uint8

// The stages.
const (
	StageValidating    Stage = iota
	StageTransactional       // after all others, and only if they allowed
)
