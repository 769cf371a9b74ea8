// SPDX-License-Identifier: Apache-2.0

// Package chain is what a configuration comes to for one cluster, compiled and frozen:
// who it is, and whom to ask about its admissions, in which order and how.
package chain

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
)

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

// MaxTimeout is the longest that kube-apiserver waits for a webhook.
const MaxTimeout = 30 * time.Second

// Cluster is one caller with all that holds for it.
type Cluster struct {
	Name      string
	Labels    map[string]string
	Anonymous bool // accepted without any credential
	// Credentials are what its kube-apiserver can present; SourceRanges, if there are
	// any, are the only addresses that its API servers call from.
	Credentials  Credentials
	SourceRanges []netip.Prefix
	Timeout      time.Duration // as this cluster registered us; 0: unknown
	// RequestBytes is the cluster's own limit of a request body; 0: the process's.
	RequestBytes int64
	Bypass       exempt.Rules
	FailOpen     exempt.Rules
	Namespaces   match.Namespaces                             // nil: only kubernetes.io/metadata.name is known
	Stored       map[schema.GroupVersionResource]hook.Objects // of the resources that its Entries need
	Types        hook.Kinds                                   // nil: nobody can be asked
	Authorizer   Authorizer                                   // nil: nobody can be asked
	Validating   *Chain
	Mutating     *Chain

	Declared KubernetesVersion // zero: its source may know
	// Registration is what is done about the cluster's registration by whoever looks
	// after it: Report, Apply or Off.
	Registration string
}

// Chain returns the cluster's webhooks of one phase.
func (c *Cluster) Chain(p Phase) *Chain {
	if p == Mutating {
		return c.Mutating
	}
	return c.Validating
}

// SelectedLabels adds the keys of the labels of stored namespaces that the cluster's
// webhooks, and what is asked besides, look at.
func (c *Cluster) SelectedLabels(into map[string]bool) {
	for _, list := range []*Chain{c.Validating, c.Mutating} {
		for _, w := range list.Webhooks {
			for _, key := range w.Matcher.SelectedLabels() {
				into[key] = true
			}
			for _, key := range w.Needs.NamespaceLabels {
				into[key] = true
			}
		}
	}
}

// NeededObjects returns the resources whose stored objects the cluster's Hooks ask for,
// each once and in order.
func (c *Cluster) NeededObjects() (resources []schema.GroupVersionResource) {
	for _, list := range []*Chain{c.Validating, c.Mutating} {
		for _, w := range list.Webhooks {
			resources = append(resources, w.Needs.Objects...)
		}
	}
	slices.SortFunc(resources, CompareResources)
	return slices.Compact(resources)
}

// NeededTypes returns the groups and versions whose types the cluster's Hooks are known to
// ask for, each once and in order; ok is false where none asks for any.
func (c *Cluster) NeededTypes() (list []schema.GroupVersion, ok bool) {
	for _, w := range c.Mutating.Webhooks {
		list, ok = append(list, w.Needs.GroupVersions...), ok || w.Needs.Types
	}
	slices.SortFunc(list, func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(list), ok
}

// Authorizes reports whether some of the cluster's Hooks may ask its authorizer.
func (c *Cluster) Authorizes() bool {
	asks := func(w *Entry) bool { return w.Needs.Authorizer }
	return slices.ContainsFunc(c.Validating.Webhooks, asks) || slices.ContainsFunc(c.Mutating.Webhooks, asks)
}

// CompareResources orders resources by group, name and version.
func CompareResources(a, b schema.GroupVersionResource) int {
	return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Version, b.Version))
}

// Chain is the webhooks of one phase.
type Chain struct {
	Webhooks []*Entry     // in the order in which they take part, which Compare has
	Index    *match.Index // over Webhooks
	// Paths are the URLs on which Webhooks are considered, each on one, in the order
	// in which the API server calls them; one without a segment where no two
	// conflict.
	Paths []*Path

	Positions map[string]int // by PathID
}

// Entry is a Hook in its place of a cluster's chain: one entry of a Configuration,
// compiled for one Cluster.
type Entry struct {
	hook.ID
	Hook          hook.Hook
	Noun          string // what messages call the Hook; "": webhook
	Title         string // what messages call it with its name; "": Noun and Name
	DenialPrefix  string // how the message of a rejection begins; "": as kube-apiserver words a webhook's
	Audited       string // what the keys of its audit annotations begin with, those of one key put together; "": Name, alone
	PathID        string // names it in the segments of Paths
	Matcher       *match.Matcher
	Spec          match.Spec // what Matcher is compiled from, and the conditions that the Hook evaluates itself
	Bindings      []string   // names of the WebhookBindings that say so, for clusters that they select
	FailurePolicy FailurePolicy
	SideEffects   SideEffects
	Reinvocation  bool // reinvocationPolicy: IfNeeded
	CompiledIn    bool // a plugin, which is not asked again for what other plugins change
	Timeout       time.Duration
	Mode          Mode
	Stage         Stage
	Needs         Needs
	Order         int32 // as its bindings say: lower ones of a stage first
	Probe         Probe
	Join          Join
	// Pending is why the webhook is not called yet: it is new, joins when it is
	// ready, and has not answered a probe. Nil for all others.
	Pending error
}

// Needs is what a Hook asks the cluster for (hook.Caller).
type Needs struct {
	// NamespaceLabels are the labels of stored namespaces that the Hook reads, beside the
	// Matcher.
	NamespaceLabels []string
	Objects         []schema.GroupVersionResource
	Authorizer      bool
	// Types: the Hook asks for the types of kinds, of which those of GroupVersions are
	// known beforehand.
	Types         bool
	GroupVersions []schema.GroupVersion
}

// Authorizer answers for the authorizer of a cluster, as hook.Caller says.
type Authorizer interface {
	Authorize(access *authorizationv1.SubjectAccessReviewSpec, deadline time.Time) (authorizationv1.SubjectAccessReviewStatus, error)
}

// Compare orders Entries as they take part: by stage, and in a stage as their bindings
// say. Equal ones stay as their Configurations have them.
func Compare(x, y *Entry) int {
	return cmp.Or(cmp.Compare(x.Stage, y.Stage), cmp.Compare(x.Order, y.Order))
}

// FailurePolicy says what a CallError means.
type FailurePolicy uint8

// The failure policies.
const (
	Fail FailurePolicy = iota
	Ignore
)

// String returns the policy as Kubernetes spells it.
func (p FailurePolicy) String() string {
	if p == Ignore {
		return "Ignore"
	}
	return "Fail"
}

// SideEffects says what a call to the webhook may do besides answering.
type SideEffects uint8

// The side effect classes.
const (
	SideEffectsNone SideEffects = iota
	SideEffectsNoneOnDryRun
	SideEffectsSome
	SideEffectsUnknown
)

// String returns the class as Kubernetes spells it.
func (s SideEffects) String() string {
	switch s {
	case SideEffectsNone:
		return "None"
	case SideEffectsNoneOnDryRun:
		return "NoneOnDryRun"
	case SideEffectsSome:
		return "Some"
	}
	return "Unknown"
}

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

// Modes are all of them, as a WebhookBinding spells them.
var Modes = [...]string{Enforce: "Enforce", Warn: "Warn", Shadow: "Shadow"}

func (m Mode) String() string { return Modes[m] }

// Stage says when a Hook is asked: lower ones first, in the order of kube-apiserver's
// plugins.
type Stage int8

// The stages.
const (
	StagePolicy        Stage = iota - 1 // before all others; no WebhookBinding names it
	StageValidating                     // with the webhooks
	StageTransactional                  // after all others, and only if they allowed
)

// Stages are those that a WebhookBinding may name, as it spells them.
var Stages = [...]string{StageValidating: "Validating", StageTransactional: "Transactional"}

func (s Stage) String() string {
	if s == StagePolicy {
		return "Policy"
	}
	return Stages[s]
}

// Find returns the webhook of that name that takes part, or nil.
func (c *Chain) Find(configuration, name string) *Entry {
	if c == nil {
		return nil
	}
	for _, w := range c.Webhooks {
		if w.Configuration == configuration && w.Name == name && w.Pending == nil {
			return w
		}
	}
	return nil
}

// With returns c with a list in which each webhook stands in the place of one of c.
// Paths are those of c, which the cluster's registration is made of.
func (c *Chain) With(list []*Entry) *Chain {
	matchers := make([]*match.Matcher, len(list))
	for i, w := range list {
		matchers[i] = w.Matcher
	}
	return &Chain{Webhooks: list, Index: match.NewIndex(matchers), Paths: c.Paths, Positions: c.Positions}
}

// Called is the Hook as messages name it.
func (w *Entry) Called() string {
	if w.Title != "" {
		return w.Title
	}
	return fmt.Sprintf("%s %q", cmp.Or(w.Noun, "webhook"), w.Name)
}

// Label is the Hook in lists, as configuration/webhook or policy/binding: names of webhooks
// are unique in their configuration only.
func (w *Entry) Label() string { return w.Configuration + "/" + w.Name }

// Denial is what a user reads of a rejection.
func (w *Entry) Denial(message, reason string) string {
	begin := w.DenialPrefix
	if begin == "" {
		begin = "admission " + w.Called() + " denied the request"
	}
	if said := cmp.Or(message, reason); said != "" {
		return begin + ": " + said
	}
	return begin + " without explanation"
}

// ServedBy returns the Identity of the Resource that the Hook needs; "": it needs none.
func (w *Entry) ServedBy() string {
	if h, ok := w.Hook.(Served); ok {
		return h.ServedBy()
	}
	return ""
}

// Sum is over all that w says, and over where it is served.
func (w *Entry) Sum() []byte {
	said := *w
	said.Matcher = nil            // Spec says it
	text, _ := json.Marshal(said) // plain data always has a text
	sum := sha256.Sum256(append(text, w.ServedBy()...))
	return sum[:]
}
