// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"

	"github.com/admission-dispatcher/dispatcher/exempt"
)

// Exemption is what the dispatcher leaves out in some clusters.
type Exemption struct {
	*Exempted
	Clusters []string        // by name; none: there is no cluster yet
	Webhooks map[string]bool // that these clusters call, as configuration/webhook; nil: all
}

// Exempted are requests that pass without a webhook being called, and those that pass
// although the call fails.
type Exempted struct{ Bypass, FailOpen exempt.Rules }

// blocks reports whether a failing call stops the request.
func (e *Exempted) blocks(x *witness) bool {
	if _, bypassed := e.Bypass.Match(x.subject.Review); bypassed {
		return false
	}
	_, passes := e.FailOpen.Match(x.subject.Review)
	return !passes
}

// calls reports whether the clusters call the webhook.
func (e *Exemption) calls(w *webhook) bool {
	return e.Webhooks == nil || e.Webhooks[w.of.Name+"/"+w.Name]
}

// exposure is where a webhook stops what it stops.
type exposure struct {
	clusters []string
	all      int // clusters that call the webhook
}

// String says where, if that is not everywhere.
func (e *exposure) String() string {
	switch n := len(e.clusters); n {
	case 0, e.all:
		return ""
	case 1:
		return " in Cluster/" + e.clusters[0]
	default:
		return fmt.Sprintf(" in Cluster/%s and %d more", e.clusters[0], n-1)
	}
}

// exposed reports whether an outage of w stops the request anywhere, and adds where. An
// API server that calls w itself exempts nothing.
func (l *linter) exposed(w *webhook, x *witness, into *exposure) bool {
	if l.Exemptions == nil {
		return true
	}
	into.all = 0
	blocked, known := false, map[*Exempted]bool{} // a thousand clusters may share one
	for i := range l.Exemptions {
		e := &l.Exemptions[i]
		if !e.calls(w) {
			continue
		}
		blocks, looked := known[e.Exempted]
		if !looked {
			blocks = e.blocks(x)
			known[e.Exempted] = blocks
		}
		into.all += len(e.Clusters)
		if !blocks {
			continue
		}
		blocked = true
		for _, name := range e.Clusters {
			if !slices.Contains(into.clusters, name) {
				into.clusters = append(into.clusters, name)
			}
		}
	}
	return blocked
}
