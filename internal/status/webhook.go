// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/match"
	"github.com/admission-dispatcher/dispatcher/policy"
	"github.com/admission-dispatcher/dispatcher/transport"
	"github.com/admission-dispatcher/dispatcher/webhook"
)

// Webhook is one webhook as it is for some clusters: bindings can make several
// of one. A policy and a plugin are ones without a Target.
type Webhook struct {
	ID            string `json:"id"`   // unique in a Status
	Kind          string `json:"kind"` // webhook, policy or plugin
	Configuration string `json:"configuration"`
	Name          string `json:"name"`
	Phase         string `json:"phase"`
	// Matches says in a sentence what is sent to it.
	Matches           string      `json:"matches"`
	Rules             []string    `json:"rules"`
	MatchPolicy       string      `json:"matchPolicy"`
	NamespaceSelector string      `json:"namespaceSelector,omitempty"`
	ObjectSelector    string      `json:"objectSelector,omitempty"`
	Conditions        []Condition `json:"matchConditions"`
	FailurePolicy     string      `json:"failurePolicy"`
	OnFailure         string      `json:"onFailure"` // what becomes of an admission: Deny, Allow or Nothing
	Retry             bool        `json:"retry"`
	SideEffects       string      `json:"sideEffects"`
	TimeoutSeconds    float64     `json:"timeoutSeconds"`
	Mode              string      `json:"mode"`
	Stage             string      `json:"stage"`
	Reinvocation      bool        `json:"reinvocation"`
	Hedge             bool        `json:"hedge"` // slow calls may be asked twice
	Bindings          []string    `json:"bindings"`
	Target            string      `json:"target"` // Target.ID; "": it is in the process
	Policy            *Policy     `json:"policy"` // nil: it is no policy
	// Shadow is nil where the mode is another.
	Shadow *ShadowCounts `json:"shadow"`
}

// Label is configuration/name.
func (w *Webhook) Label() string { return w.Configuration + "/" + w.Name }

// Registered returns how many webhooks there are, each once, whatever bindings
// make of it.
func (s *Status) Registered() int {
	names := map[[3]string]bool{}
	for i := range s.Webhooks {
		w := &s.Webhooks[i]
		names[[3]string{w.Phase, w.Configuration, w.Name}] = true
	}
	return len(names)
}

// ClustersOf returns the clusters that have the webhook, by name.
func (s *Status) ClustersOf(id string) (names []string) {
	for i := range s.Clusters {
		chain := &s.Chains[s.Clusters[i].Chain]
		if slices.Contains(chain.Mutating, id) || slices.Contains(chain.Validating, id) {
			names = append(names, s.Clusters[i].Name)
		}
	}
	return names
}

// Policy is what a policy with a binding decides, which has no Target.
type Policy struct {
	Validations []string `json:"validations"`
	Mutations   []string `json:"mutations"` // of one that mutates
	Actions     []string `json:"actions"`
	Params      string   `json:"params,omitempty"` // the kind, and where they come from; "": there are none
	Version     string   `json:"version"`          // the beginning of a hash over all that both say, in hex
}

func newPolicy(w *chain.Entry) *Policy {
	p := &Policy{Validations: []string{}, Mutations: []string{}, Actions: []string{}, Version: hex.EncodeToString(w.Sum())[:shownIdentity]}
	switch b := w.Hook.(type) {
	case *policy.Binding:
		p.Validations, p.Params = b.Validations(), b.Params
		for _, action := range b.Actions {
			p.Actions = append(p.Actions, string(action))
		}
	case *policy.MutationBinding:
		p.Mutations, p.Params = b.Mutations(), b.Params
	}
	return p
}

// Condition is one matchCondition.
type Condition struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

func newWebhook(w *chain.Entry, p chain.Phase) Webhook {
	v := newVariant(w, p)
	v.describe(&w.Spec)
	return v
}

// newVariant returns what bindings may say of w.
func newVariant(w *chain.Entry, p chain.Phase) Webhook {
	v := Webhook{
		Kind:           cmp.Or(w.Noun, "webhook"),
		Configuration:  w.Configuration,
		Name:           w.Name,
		Phase:          p.String(),
		FailurePolicy:  w.FailurePolicy.String(),
		OnFailure:      onFailure(w.Mode, w.FailurePolicy),
		SideEffects:    w.SideEffects.String(),
		TimeoutSeconds: w.Timeout.Seconds(),
		Mode:           w.Mode.String(),
		Stage:          w.Stage.String(),
		Reinvocation:   w.Reinvocation,
		Bindings:       append([]string{}, w.Bindings...),
		Target:         targetID(w.ServedBy()),
	}
	switch h := w.Hook.(type) {
	case *webhook.Hook:
		v.Retry, v.Hedge = h.Repeat.Failures, !h.Repeat.NoHedge && w.SideEffects.Repeatable(true)
	case *policy.Binding, *policy.MutationBinding:
		v.Policy = newPolicy(w)
	}
	return v
}

// describe fills in what the webhook wants, which is the same for all clusters.
func (w *Webhook) describe(s *match.Spec) {
	w.Matches = sentence(s)
	w.Rules, w.Conditions = []string{}, []Condition{}
	w.MatchPolicy = string(s.MatchPolicy)
	w.NamespaceSelector, w.ObjectSelector = selectorText(s.NamespaceSelector), selectorText(s.ObjectSelector)
	for _, r := range s.Rules {
		w.Rules = append(w.Rules, match.RuleString(r))
	}
	for _, c := range s.MatchConditions {
		w.Conditions = append(w.Conditions, Condition{Name: c.Name, Expression: c.Expression})
	}
}

// Target is where webhooks are served. The counts are since it was made.
type Target struct {
	ID         string `json:"id"` // the beginning of its identity, in hex
	URL        string `json:"url"`
	Unresolved string `json:"unresolved,omitempty"` // why there is no endpoint
	// LookupError is why the name could not be looked up last, while there are endpoints.
	LookupError   string     `json:"lookupError,omitempty"`
	Endpoints     []Endpoint `json:"endpoints"`
	Attempts      int64      `json:"attempts"`
	Retries       int64      `json:"retries"`
	Hedges        int64      `json:"hedges"`
	BudgetRefused int64      `json:"budgetRefused"`
	Disagreements int64      `json:"disagreements"`
	Misread       int64      `json:"misread"`
	Reads         string     `json:"reads"` // the form that its answers offer
	Latency       Latency    `json:"latency"`
	Samples       []Sample   `json:"samples"` // of the last ten minutes, oldest first
}

// Latency is how long attempts took in the last ten seconds.
type Latency struct {
	Attempts int64   `json:"attempts"`
	P50      float64 `json:"p50Seconds"`
	P95      float64 `json:"p95Seconds"`
	P99      float64 `json:"p99Seconds"`
}

// Sample is the latency of ten seconds. One without attempts says nothing else.
type Sample struct {
	Time     time.Time `json:"time"` // their end
	Attempts int64     `json:"attempts"`
	P50      float64   `json:"p50Seconds"`
	P99      float64   `json:"p99Seconds"`
}

// Endpoint is one address of a Target, with what its breaker says.
type Endpoint struct {
	Address   string `json:"address"`
	Condition string `json:"condition"` // of transport.Condition
	// LastError is how an attempt or a probe last failed; nil: none has.
	LastError   *LastError `json:"lastError"`
	LastAnswer  time.Time  `json:"lastAnswer,omitzero"` // to a tenth of a second
	State       string     `json:"state"`               // closed, open, half-open or ramping
	Since       time.Time  `json:"since,omitzero"`
	Until       time.Time  `json:"until,omitzero"` // when an open one is tried again
	Requests    int        `json:"requests"`       // in the breaker's window
	Failures    int        `json:"failures"`
	Width       int        `json:"width,omitempty"` // how many at a time, while it is tried
	Circuits    []Circuit  `json:"circuits"`        // of single clusters, that are not closed
	OpenCount   int        `json:"openCircuits"`    // how many there are: at most 64 are listed
	Outstanding int        `json:"outstanding"`
}

// Circuit is one of a breaker that concerns a single cluster and is not closed.
type Circuit struct {
	Cluster  string    `json:"cluster"`
	Resource string    `json:"resource,omitempty"` // empty: all
	State    string    `json:"state"`
	Until    time.Time `json:"until,omitzero"` // when an open one is tried again
}

// LastError is how an attempt or a probe failed.
type LastError struct {
	Time  time.Time `json:"time"`
	Cause string    `json:"cause"` // in the words of the metrics
	Text  string    `json:"text"`
}

// Healthy reports whether nothing is known against the Endpoint, but what Circuits name:
// the last attempt was answered, or there was none.
func (e *Endpoint) Healthy() bool {
	return e.Condition == transport.Healthy.String() || e.Condition == transport.Untried.String()
}

// Recovering reports whether the Endpoint is called again, a few calls at a time.
func (e *Endpoint) Recovering() bool { return e.Condition == transport.Recovering.String() }

// String names the cluster, and the resource if it is one alone.
func (c Circuit) String() string {
	if c.Resource == "" {
		return c.Cluster
	}
	return c.Cluster + " (" + strings.TrimPrefix(c.Resource, "/") + ")"
}

// OpenFor says in words for whom an Endpoint that is well is not called, at most
// three of them; empty: for nobody.
func (e *Endpoint) OpenFor() string {
	var names []string
	for _, c := range e.Circuits[:min(len(e.Circuits), 3)] {
		names = append(names, c.String())
	}
	text := strings.Join(names, ", ")
	if more := e.OpenCount - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
