// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// How long a Target that does not read what it offers is sent the plain form, doubled
// each time until it reads it again.
const (
	fallbackTime    = time.Minute
	maxFallbackTime = time.Hour
)

// blamelessTime is how long a form is not blamed for anything once the plain one has
// failed too: a webhook that is simply broken must not be called twice each time.
const blamelessTime = 10 * time.Second

// negotiation is what one Target offers to read beside plain JSON, and whether it is
// sent that. It is safe for concurrent use.
//
//	state      it is sent       leaves it
//	plain      JSON             for offered, by an answer with an offer
//	offered    what it offers   for fallback, by a call that shows that it does not read that, or by an answer that offers less
//	fallback   JSON             for offered or plain, after a time that doubles
//
// Beside that, nothing is blamed on the form for a while once the plain one has
// failed as well.
type negotiation struct {
	mu             sync.Mutex
	offer          reading
	fallbackUntil  time.Time
	blamelessUntil time.Time
	wait           time.Duration // of the last fallback; 0 once the offer has been read again
}

type negotiationKey struct{}

// negotiationOf returns the negotiation with t, which lives as long as t.
func negotiationOf(t *transport.Target) *negotiation {
	return t.Keep(negotiationKey{}, func() any { return new(negotiation) }).(*negotiation)
}

// reads returns what the Target is sent beside plain JSON as of now. The clock is only
// read where there has been a fallback.
func (n *negotiation) reads(now func() time.Time) reading {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.fallbackUntil.IsZero() && now().Before(n.fallbackUntil) {
		return 0
	}
	return n.offer
}

var errLessOffered = errors.New("its answers do not say any more that it reads what it has read")

// hear notes what an answer offers, and returns the Switch if that is something
// else than before. A verdict that offers nothing takes the offer back: it is from
// another version of the webhook. One in protobuf does not, whose webhook reads it,
// nor what is no verdict, which may be a proxy's.
//
// What was taken back is not believed again for a while, so that replicas that offer
// different things do not have the form change with every answer.
func (n *negotiation) hear(reply *transport.Reply, verdict bool, clock func() time.Time) *transport.Switch {
	offer, any := readingOf(reply)
	if !any && (!verdict || isProtobuf(reply.ContentType)) {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if offer == n.offer { // nearly always, and the clock is not read
		return nil
	}
	now := clock()
	if now.Before(n.fallbackUntil) {
		offer &= n.offer
	}
	lost := n.offer &^ offer
	if offer == n.offer {
		return nil
	}
	n.offer = offer
	if lost == 0 {
		return n.switched(now, nil)
	}
	n.fallBack(now)
	return n.switched(now, errLessOffered)
}

// learn notes what a call has found out about the form that was offered, and returns
// the Switch if another is sent from now on.
func (n *negotiation) learn(l transport.Lesson, now time.Time) *transport.Switch {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch l {
	case transport.Read:
		n.wait = 0
	case transport.Blameless:
		n.blamelessUntil = now.Add(blamelessTime)
	case transport.Misread:
		if n.fallBack(now) {
			return n.switched(now, nil)
		}
	}
	return nil
}

// isTrusted reports whether a failure as of now may be the form's fault.
func (n *negotiation) isTrusted(now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !now.Before(n.blamelessUntil)
}

// fallBack has the plain form sent for a while. It reports false if that was so
// already.
func (n *negotiation) fallBack(now time.Time) bool {
	if now.Before(n.fallbackUntil) {
		return false
	}
	n.wait = min(max(fallbackTime, 2*n.wait), maxFallbackTime)
	n.fallbackUntil = now.Add(n.wait)
	return true
}

func (n *negotiation) switched(now time.Time, err error) *transport.Switch {
	return &transport.Switch{Reads: n.text(now), Err: err}
}

func (n *negotiation) text(now time.Time) string {
	text := n.offer.String()
	if n.offer != 0 && now.Before(n.fallbackUntil) {
		text = codec.JSON.String() + " until " + n.fallbackUntil.UTC().Format(time.RFC3339) + ", then " + text
	}
	return text
}

// Reads says what a Target is sent where nothing is pinned, in words: the best
// encoding and the codings that its answers offer, such as "Protobuf, zstd", and
// until when it is sent plain JSON in spite of that.
func Reads(t *transport.Target, now time.Time) string {
	n := negotiationOf(t)
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text(now)
}
