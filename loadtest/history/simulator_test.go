// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// simulator is a small dispatcher, in a world without sockets and clocks: it
// decides each call as the contract says, and writes down what the caller and
// the webhooks would have seen. It can be given one bug.
type simulator struct {
	world    World
	rand     *rand.Rand
	bug      bug
	attempts []Attempt
	extra    map[string][]time.Duration // when hedges and retries were made, by webhook
	met      map[*Fault]int             // calls that a Fault has met
}

// simulate runs n calls in the world of the seed.
func simulate(seed uint64, n int, b bug) (World, []Call, []Attempt) {
	r := rand.New(rand.NewPCG(seed, 7))
	s := &simulator{world: randomWorld(r), rand: r, bug: b, extra: map[string][]time.Duration{}, met: map[*Fault]int{}}
	calls := randomCalls(r, n)
	for i := range calls {
		s.admit(&calls[i])
	}
	return s.world, calls, s.attempts
}

// admit answers one call.
func (s *simulator) admit(c *Call) {
	c.Status, c.UIDAnswered, c.Annotations = statusOK, c.UID, map[string]string{}
	c.Done = c.Sent // until the answer is known
	if s.bug == droppedCall && s.rare() {
		c.Status, c.Err, c.Done = 0, "EOF", c.Sent+ms
		return
	}
	if s.world.Losses[0].covers(c) && s.rare() {
		c.Status, c.Err, c.Done = 0, "connection reset by peer", c.Sent+ms
		return
	}
	if s.bug == outlastsCaller && s.rare() {
		c.Status, c.Err, c.GaveUp, c.Done = 0, "timeout", true, c.Sent+c.Timeout
		return
	}
	if s.bug == foreignUID && s.rare() {
		c.UIDAnswered = "uid-of-somebody-else"
	}
	if (c.Exempt && s.bug != bypassAsks) || (s.bug == bypassLeaks && s.rare()) {
		c.Allowed, c.Done = true, c.Sent+ms
		c.Annotations[bypassAnnotation] = "exempt-kind"
		if !c.Exempt { // the leak is not even said
			delete(c.Annotations, bypassAnnotation)
		}
		return
	}
	hash, chain := s.chain(c)
	if s.overloaded(c, chain, hash) {
		return
	}
	var outcomes []outcome
	if c.Phase == Mutating {
		outcomes = s.mutate(c, chain)
	} else {
		outcomes = s.validate(c, chain)
	}
	s.answer(c, outcomes, hash)
}

// overloaded sheds some of the calls where that may be.
func (s *simulator) overloaded(c *Call, chain []*Webhook, hash string) bool {
	if shed := s.world.Sheds[0].covers(c) || s.bug == shedsAnybody; !shed || !s.rare() {
		return false
	}
	asked := slices.DeleteFunc(slices.Clone(chain), func(w *Webhook) bool { return w.Mode == Shadow })
	if slices.ContainsFunc(asked, func(w *Webhook) bool { return !w.ignores(c) || w.uncallable(c) || w.Truth(c.UID).Refusal }) {
		c.Code, c.Message = 429, "the dispatcher is overloaded"
		return true
	}
	var all []outcome
	for _, w := range asked {
		all = append(all, outcome{webhook: w, kind: saidFailedOpen, cause: Shed, at: c.Sent})
	}
	s.answer(c, all, hash)
	return true
}

// chain returns the webhooks that are to be asked, of the Snapshot in force.
func (s *simulator) chain(c *Call) (hash string, chain []*Webhook) {
	i := len(s.world.Snapshots) - 1
	for s.world.Snapshots[i].From > c.Sent {
		i--
	}
	if s.bug == staleSnapshot && s.rare() {
		i = (i + 1) % len(s.world.Snapshots)
	}
	now := &s.world.Snapshots[i]
	chain = now.wanted(c)
	if s.bug == mixedSnapshots && s.rare() {
		other := s.world.Snapshots[(i+1)%len(s.world.Snapshots)].wanted(c)
		half := func(w *Webhook) bool { return w.Order < 3 }
		chain = append(slices.DeleteFunc(chain, func(w *Webhook) bool { return !half(w) }), slices.DeleteFunc(other, half)...)
	}
	if s.bug == wrongRoute && s.rare() {
		for j := range now.Webhooks {
			if w := &now.Webhooks[j]; w.Phase == c.Phase && !w.wants(c) {
				chain = append(chain, w)
			}
		}
	}
	return now.Hash, chain
}

// outcome is what one webhook came to, at what time.
type outcome struct {
	webhook *Webhook
	kind    kind
	allowed bool // else kind says
	cause   Cause
	code    int32
	text    string
	patch   []byte
	at      time.Duration
}

func (o *outcome) denies() bool { return !o.allowed && o.kind <= saidFailed }

// deadline of the whole of c, as docs/semantics.md has it.
func deadline(c *Call) time.Duration {
	return c.Sent + c.Timeout - max(100*ms, c.Timeout/20)
}

// validate asks all at once; after the first denial others have the grace.
func (s *simulator) validate(c *Call, chain []*Webhook) []outcome {
	var all []outcome
	refused := slices.ContainsFunc(chain, func(w *Webhook) bool { return w.uncallable(c) && w.Mode == Enforce })
	for _, w := range chain {
		if refused && !w.uncallable(c) {
			continue
		}
		if o := s.invoke(c, w, c.Sent+ms, deadline(c)); w.Mode != Shadow || s.bug == shadowCounts {
			all = append(all, o)
		}
	}
	end := s.end(c, all)
	for _, o := range all {
		c.Done = max(c.Done, min(o.at, end))
	}
	if s.bug == deafGrace {
		end -= s.world.Limits.Grace
	}
	return slices.DeleteFunc(all, func(o outcome) bool { return o.at > end })
}

// end is when nobody is waited for any more.
func (s *simulator) end(c *Call, all []outcome) time.Duration {
	grace := s.world.Limits.Grace
	if s.bug == longGrace {
		grace += 400 * ms
	}
	end := deadline(c)
	for _, o := range all {
		if o.denies() {
			end = min(end, o.at+grace)
		}
	}
	return end
}

// mutate asks one after the other until somebody denies.
func (s *simulator) mutate(c *Call, chain []*Webhook) []outcome {
	var all []outcome
	now := c.Sent + ms
	for _, w := range chain {
		o := s.invoke(c, w, now, deadline(c))
		if w.Mode == Shadow && s.bug != shadowCounts {
			continue
		}
		now = o.at
		all = append(all, o)
		if o.denies() && s.bug != chainGoesOn {
			break
		}
	}
	c.Done = now
	return all
}

// invoke is one webhook's turn: ask, and let failure policy and mode speak.
func (s *simulator) invoke(c *Call, w *Webhook, now, deadline time.Duration) outcome {
	o := outcome{webhook: w, at: now}
	switch {
	case w.uncallable(c) && s.bug != dryRunAsks:
		o.kind, o.cause, o.code = saidRefused, DryRun, 400
	case now >= deadline:
		s.fails(c, &o, NoTimeLeft)
	default:
		s.ask(c, &o, now, min(now+w.Timeout, deadline))
	}
	return s.soften(c, o)
}

// soften is where Warn mode speaks.
func (s *simulator) soften(c *Call, o outcome) outcome {
	enforced := s.bug == warnEnforced && s.rare()
	if o.webhook.Mode != Warn || !o.denies() || enforced {
		return o
	}
	if o.cause == DryRun {
		o.kind = saidSkipped
		return o
	}
	o.text = line(c, &o)
	o.kind = saidSoftened
	return o
}

// fails is where the failure policy speaks.
func (s *simulator) fails(c *Call, o *outcome, cause Cause) {
	o.cause, o.code = cause, cause.codes()[0]
	ignored := o.webhook.ignores(c)
	switch {
	case s.bug == ignoreCloses && s.rare():
		ignored = false
	case s.bug == failOpens && s.rare():
		ignored = true
	case s.bug == allowOnTimeout && cause == Timeout:
		o.allowed = true
		return
	}
	o.kind = saidFailed
	if ignored {
		o.kind = saidFailedOpen
	}
	if s.bug == patchOfFailed {
		o.patch = o.webhook.Truth(c.UID).Patch
	}
}

// rare is true now and then.
func (s *simulator) rare() bool { return s.rand.IntN(8) == 0 }

// byConfiguration sorts outcomes as they stand in an answer.
func byConfiguration(all []outcome) []outcome {
	slices.SortStableFunc(all, func(x, y outcome) int { return cmp.Compare(x.webhook.Order, y.webhook.Order) })
	return all
}
