// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"slices"
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
// or a fail-open. One that others deny has not failed open, whatever else failed: it is
// not in.
type seen struct{ denial, failOpen, unavailable, shed bool }

func look(v *dispatcher.Verdict) seen {
	denial, failOpen := !v.Response.Allowed, v.FailedOpen()
	return seen{denial: denial, failOpen: failOpen && !denial, unavailable: failOpen && denial, shed: v.Shed()}
}

// observe keeps what is remarkable of an admission.
func (r *recent) observe(record *dispatcher.Record, s seen) {
	d, outcomes := newDecision(record), record.Verdict.Outcomes
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.denial {
		denied := d.about(outcomes, (*dispatcher.Outcome).Denies)
		denied.Unavailable = involved(outcomes, (*dispatcher.Outcome).FailsOpen)
		r.denials.add(denied)
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
	d.Webhooks, d.Unavailable = involved(outcomes, belongs), []Involved{}
	return &d
}

// involved returns the webhooks whose outcomes belong.
func involved(outcomes []dispatcher.Outcome, belongs func(*dispatcher.Outcome) bool) []Involved {
	list := []Involved{}
	for i := range outcomes {
		o := &outcomes[i]
		if !belongs(o) {
			continue
		}
		list = append(list, Involved{
			Configuration: o.Webhook.Configuration,
			Webhook:       o.Webhook.Name,
			Result:        o.Result.String(),
			Cause:         string(o.Cause),
			FailOpenRule:  o.FailOpenRule,
		})
	}
	return list
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

// ring keeps the last values that were added, at most as many as its size. It is
// not safe for concurrent use.
type ring[T any] struct {
	size   int
	values []T
	next   int // where the oldest is, once it is full
}

func newRing[T any](size int) *ring[T] { return &ring[T]{size: size} }

func (r *ring[T]) add(value T) {
	if len(r.values) < r.size {
		r.values = append(r.values, value)
		return
	}
	r.values[r.next] = value
	r.next = (r.next + 1) % r.size
}

// oldestFirst returns a copy of what there is; it is never nil.
func (r *ring[T]) oldestFirst() []T {
	all := make([]T, 0, len(r.values))
	all = append(all, r.values[r.next:]...)
	return append(all, r.values[:r.next]...)
}

func (r *ring[T]) newestFirst() []T {
	all := r.oldestFirst()
	slices.Reverse(all)
	return all
}

// sharedRing keeps the last decisions, at most as many as its size, and shares them
// among clusters: one that is full forgets the oldest of the cluster that has most,
// so that a storm of one cluster displaces its own only. It is not safe for
// concurrent use.
type sharedRing struct {
	size   int
	values []*Decision    // the oldest first
	has    map[string]int // by cluster
}

func newSharedRing(size int) *sharedRing { return &sharedRing{size: size, has: map[string]int{}} }

func (r *sharedRing) add(d *Decision) {
	r.has[d.Cluster]++
	if len(r.values) >= r.size {
		r.forgetOne()
	}
	r.values = append(r.values, d)
}

// forgetOne forgets the oldest of those that have most, with who comes counted.
func (r *sharedRing) forgetOne() {
	most := 0
	for _, n := range r.has {
		most = max(most, n)
	}
	i := slices.IndexFunc(r.values, func(d *Decision) bool { return r.has[d.Cluster] == most })
	if i < 0 {
		return // not reached: a size of 0
	}
	cluster := r.values[i].Cluster
	if r.has[cluster]--; r.has[cluster] == 0 {
		delete(r.has, cluster)
	}
	r.values = slices.Delete(r.values, i, i+1)
}

// newestFirst returns copies of what there is; it is never nil.
func (r *sharedRing) newestFirst() []Decision {
	all := make([]Decision, 0, len(r.values))
	for _, d := range slices.Backward(r.values) {
		all = append(all, *d)
	}
	return all
}
