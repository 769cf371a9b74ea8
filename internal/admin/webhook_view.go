// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"strings"

	"github.com/admission-dispatcher/dispatcher/internal/status"
)

// webhookView is the page of one webhook: of all that bindings make of it.
type webhookView struct {
	page
	Configuration, Name string
	Pending             []status.Pending
	Notices             []status.Notice
	Variants            []variant
	Denials, FailOpens  decisions
}

// variant is one webhook as it is for some clusters.
type variant struct {
	Title                               string
	Webhook                             status.Webhook
	Target                              status.Target
	Endpoints                           endpointTable
	Clusters                            []string
	Spark                               spark
	ModeWords, PolicyWords, EffectWords string
}

// newWebhookView returns nil if there is no such webhook, served or pending.
func newWebhookView(s *status.Status, configuration, name string) *webhookView {
	of := func(list []status.Decision) []status.Decision {
		return kept(list, func(d *status.Decision) bool {
			for _, w := range d.Webhooks {
				if w.Configuration == configuration && w.Webhook == name {
					return true
				}
			}
			return false
		})
	}
	v := &webhookView{
		page:          newPage(s, name),
		Configuration: configuration,
		Name:          name,
		Denials:       newDecisions(s, "Denials by this webhook", "None among the last.", of(s.Denials)),
		FailOpens:     newDecisions(s, "Fail-opens of this webhook", "None among the last.", of(s.FailOpens)),
	}
	for _, p := range s.Pending {
		if p.Webhook == configuration+"/"+name {
			v.Pending = append(v.Pending, p)
		}
	}
	for _, n := range s.Notices {
		if contains(n.Webhooks, configuration+"/"+name) {
			v.Notices = append(v.Notices, n)
		}
	}
	index := indexOf(s)
	for i := range s.Webhooks {
		if w := &s.Webhooks[i]; w.Configuration == configuration && w.Name == name {
			v.Variants = append(v.Variants, index.variant(w))
		}
	}
	if len(v.Variants)+len(v.Pending) == 0 {
		return nil
	}
	if len(v.Variants) > 1 {
		for i := range v.Variants {
			v.Variants[i].Title = fmt.Sprintf("As it is for %s", status.Count(len(v.Variants[i].Clusters), "cluster"))
		}
	}
	return v
}

func (x *index) variant(w *status.Webhook) variant {
	t := x.target(w)
	return variant{
		Title:       "What is sent to it",
		Webhook:     *w,
		Target:      t,
		Endpoints:   endpointsOf(x.status.Now, t),
		Clusters:    x.status.ClustersOf(w.ID),
		Spark:       newSpark(x.status.Now, t.Samples),
		ModeWords:   modeWords[w.Mode],
		PolicyWords: w.OnFailureWords(),
		EffectWords: effectWords[w.SideEffects],
	}
}

// phaseWords says when it is called.
func phaseWords(w status.Webhook) string {
	text := w.Phase
	if w.Stage == "Transactional" {
		text += ", after all others and only if they allowed"
	}
	if w.Reinvocation {
		text += ", and once more if later webhooks change the object"
	}
	return text
}

func bindingWords(names []string) string {
	if len(names) == 0 {
		return "no WebhookBinding"
	}
	return "WebhookBinding/" + strings.Join(names, ", WebhookBinding/")
}

func pendingWords(p status.Pending) string {
	text := p.Reason + " (" + p.URL + ")"
	if p.Previous {
		text += "; its previous version serves"
	}
	return text
}

var modeWords = map[string]string{
	"Enforce": "its denial denies",
	"Warn":    "its denial becomes a warning",
	"Shadow":  "it is called and recorded, and never decides",
}

var effectWords = map[string]string{
	"None":         "it may be asked more than once",
	"NoneOnDryRun": "it may be asked more than once on a dry run only",
	"Some":         "it is asked once, and never on a dry run",
	"Unknown":      "it is asked once, and never on a dry run",
}
