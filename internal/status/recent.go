// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"strings"
	"sync"

	"github.com/admission-dispatcher/dispatcher/dispatcher"
)

const (
	keptDecisions = 100 // of each kind, shared out among the clusters
	maxName       = 253 // bytes of a name that a request brings: the longest that Kubernetes has
)

// recent is the last admissions that webhooks did not simply allow.
type recent struct {
	mu                        sync.Mutex
	denials, failOpens, sheds *sharedRing
}

func newRecent() recent {
	return recent{
		denials:   newSharedRing(keptDecisions),
		failOpens: newSharedRing(keptDecisions),
		sheds:     newSharedRing(keptDecisions),
	}
}

// seen is which lists an admission belongs to. One that was shed is also a denial
// or a fail-open.
type seen struct{ denial, failOpen, shed bool }

func look(v *dispatcher.Verdict) seen {
	return seen{denial: !v.Response.Allowed, failOpen: v.FailedOpen(), shed: v.Shed()}
}

// observe keeps what is remarkable of an admission.
func (r *recent) observe(record *dispatcher.Record, s seen) {
	d, outcomes := newDecision(record), record.Verdict.Outcomes
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.denial {
		r.denials.add(d.about(outcomes, (*dispatcher.Outcome).Denies))
	}
	if s.failOpen {
		r.failOpens.add(d.about(outcomes, (*dispatcher.Outcome).FailsOpen))
	}
	if s.shed {
		r.sheds.add(d.about(outcomes, (*dispatcher.Outcome).Shed))
	}
}

// into copies the lists, the newest first.
func (r *recent) into(s *Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Denials, s.FailOpens, s.Sheds = r.denials.newestFirst(), r.failOpens.newestFirst(), r.sheds.newestFirst()
}

// newDecision copies what may be shown of a Record: nothing of the object, of the
// user and of the messages of webhooks, which may quote both.
func newDecision(r *dispatcher.Record) Decision {
	v := r.Review
	return Decision{
		Time:        r.Start.UTC(),
		UID:         bounded(v.UID),
		Cluster:     r.Cluster.Name,
		Phase:       r.Phase.String(),
		Operation:   v.Operation.String(),
		Group:       bounded(v.Resource.Group),
		Version:     bounded(v.Resource.Version),
		Resource:    bounded(v.Resource.Resource),
		Subresource: bounded(v.SubResource),
		Namespace:   bounded(v.Namespace),
		Name:        bounded(v.Name),
		DryRun:      v.DryRun,
		Snapshot:    r.Snapshot,
		Decision:    r.Verdict.Decision().String(),
		Allowed:     r.Verdict.Response.Allowed,
		Code:        r.Verdict.Response.Code,
	}
}

// about returns d with the webhooks that belong to a list.
func (d Decision) about(outcomes []dispatcher.Outcome, belongs func(*dispatcher.Outcome) bool) *Decision {
	d.Webhooks = []Involved{}
	for i := range outcomes {
		o := &outcomes[i]
		if !belongs(o) {
			continue
		}
		d.Webhooks = append(d.Webhooks, Involved{
			Configuration: o.Webhook.Configuration,
			Webhook:       o.Webhook.Name,
			Result:        o.Result.String(),
			Cause:         string(o.Cause),
			FailOpenRule:  o.FailOpenRule,
		})
	}
	return &d
}

func bounded(name []byte) string {
	return strings.ToValidUTF8(string(name[:min(len(name), maxName)]), "")
}

// Observe implements dispatcher.Observer.
func (c *Collector) Observe(_ context.Context, r *dispatcher.Record) {
	s := look(r.Verdict)
	c.tallies.count(r, s)
	if s != (seen{}) {
		c.recent.observe(r, s)
	}
}
