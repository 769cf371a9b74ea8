// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"errors"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/match"
)

// Explanation says what Dispatch would do with a review, without calling.
type Explanation struct {
	Cluster string `json:"cluster"`
	Phase   string `json:"phase"`
	// Paths is how many registered entries with paths of their own the webhooks
	// stand on, because they conflict: on each, the API server converts for itself.
	Paths int `json:"paths"`
	// Bypass is the rule that lets the review pass unasked. The webhooks are
	// explained all the same, as if there were none.
	Bypass string `json:"bypass,omitempty"`
	// FailOpen is the rule by which no CallError would block this request.
	FailOpen string `json:"failOpen,omitempty"`
	// Note is what its reader should know of how it came about. Explain leaves it
	// empty.
	Note     string             `json:"note,omitempty"`
	Webhooks []WebhookExplained `json:"webhooks"`
}

// WebhookExplained is one webhook's part of an Explanation.
type WebhookExplained struct {
	Configuration string `json:"configuration"`
	Webhook       string `json:"webhook"`
	// Path is where the API server calls for the webhook.
	Path string `json:"path"`
	// Called is what would happen but for a bypass.
	Called bool `json:"called"`
	// Order is 1 for what is called first; equal numbers are called at once.
	Order int `json:"order,omitempty"`
	// Reason is why the webhook is not called, Detail what is behind that.
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Rule is the rule that selected the review.
	Rule string `json:"rule,omitempty"`
	// Payload is the form in which the webhook gets the review, until a mutation; "at
	// first" says that the webhook may offer another and get that.
	Payload string `json:"payload,omitempty"`
	// Answer is what the Hook would say, where that is known without a call, and Steps
	// how it would come to that.
	Answer        string   `json:"answer,omitempty"`
	Steps         []string `json:"steps,omitempty"`
	FailurePolicy string   `json:"failurePolicy"`
	Mode          string   `json:"mode"`
	Timeout       string   `json:"timeout"`
	URL           string   `json:"url"`
}

// Explain decides as Dispatch does, with the same match code, and calls nobody.
// What an earlier webhook would change in the object is not foreseen.
func Explain(r *codec.Review, c *chain.Cluster, p chain.Phase) Explanation {
	req := Request{Review: r, Cluster: c, Phase: p}
	e := Explanation{Cluster: c.Name, Phase: p.String(), Webhooks: []WebhookExplained{}}
	if rule, ok := bypass(req); ok {
		e.Bypass = rule
	}
	if rule, ok := c.FailOpen.Match(r); ok {
		e.FailOpen = rule
	}
	subject := newSubject(req, nil, nil)
	defer subject.Release()
	list := c.Chain(p).Webhooks
	e.Paths = len(c.Chain(p).Paths)
	for i, w := range list {
		x := explain(w, w.Matcher.Match(&subject), subject.View)
		x.Path = "/v1/clusters/" + c.Name + "/" + p.String()
		if path := c.Chain(p).PathOf(i); path != nil && path.Segment != "" {
			x.Path += "/" + path.Segment
		}
		e.Webhooks = append(e.Webhooks, x)
	}
	e.order(list, p)
	return e
}

func explain(w *chain.Entry, m match.Decision, v *hook.View) WebhookExplained {
	x := WebhookExplained{
		Configuration: w.Configuration,
		Webhook:       w.Name,
		FailurePolicy: w.FailurePolicy.String(),
		Mode:          w.Mode.String(),
		Timeout:       w.Timeout.String(),
	}
	if located, ok := w.Hook.(hook.Located); ok {
		x.URL = located.Where()
	}
	if m.Rule >= 0 && m.Rule < len(w.Spec.Rules) { // who makes an Entry may not say them
		x.Rule = match.RuleString(w.Spec.Rules[m.Rule])
	}
	switch {
	case m.Reason != match.Matched:
		x.Reason, x.Detail = m.Reason.String(), m.Condition
		if m.Err != nil {
			x.Detail = m.Err.Error()
		}
	case w.Pending != nil:
		x.Reason, x.Detail = string(hook.Pending), w.Pending.Error()
	case v.Review.DryRun && !w.SideEffects.SupportsDryRun():
		x.Reason = string(hook.DryRun)
	default:
		x.ask(w.Hook, v)
	}
	return x
}

// ask says what a Hook would do that is asked.
func (x *WebhookExplained) ask(h hook.Hook, v *hook.View) {
	explainer, ok := h.(hook.Explainer)
	if !ok {
		x.Called = true
		return
	}
	said, err := explainer.Explain(v)
	if call := (*hook.CallError)(nil); errors.As(err, &call) {
		x.Reason = string(call.Cause)
	}
	x.Called, x.Payload, x.Answer, x.Steps = err == nil, said.Payload, said.Answer, said.Steps
}

// order numbers the webhooks that are called: validating ones of a stage all at once,
// mutating ones one after the other.
func (e *Explanation) order(list []*chain.Entry, phase chain.Phase) {
	order := 0
	var last *chain.Entry // that is called
	for i, w := range list {
		x := &e.Webhooks[i]
		if !x.Called {
			continue
		}
		if last == nil || last.Stage != w.Stage || phase == chain.Mutating {
			order++
		}
		x.Order, last = order, w
	}
}
