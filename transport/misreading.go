// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
)

// A webhook that is sent a form because it has said that it reads it may turn out
// not to: it was rolled back, or one of its replicas was. What it answers then is
// in doubt, and the review goes out once more in its plain form. A denial is never
// lost over that: it stands unless an attempt in plain form brings a valid verdict.

// isDoubtful reports whether an ending is not yet to be taken for an answer: a
// misreading, or an allow in the form in which a denial was perhaps one.
func (r *race) isDoubtful(end *ending) bool {
	return end.doubtful || r.denial.err != nil && !end.plain && end.allows()
}

// doubt keeps what a doubtful ending says, if it denies. It is called under the lock.
func (r *race) doubt(end *ending) {
	if !end.doubtful || !end.verdict() || r.holding && r.held.plain {
		return
	}
	r.denial = *end
	if r.holding { // an allow in the same form: no better
		r.disarm()
		r.holding = false
	}
}

// yieldsToDenial reports whether the denial that is kept is what the call comes to.
func (r *race) yieldsToDenial(end *ending) bool {
	return r.denial.err != nil && (!end.verdict() || end.allows() && !end.plain)
}

// toPlain has the plain form sent from now on, and chooses whom to send it to at once,
// if the attempt may be repeated. That takes nothing from the budget: a verdict
// would be lost by the form alone, and it happens to the calls under way when the
// first of them finds out, and to no more of that Target for a while, whether the
// form was at fault or not.
func (r *race) toPlain(next *choice) bool {
	if r.plain {
		return false
	}
	r.plain = true
	if !r.Repeat.Safe || r.attempts >= maxAttempts || !r.needed() || !time.Now().Before(r.Deadline) {
		r.refuse()
		return false
	}
	c, ok := r.choose()
	if !ok {
		r.refuse()
		return false
	}
	c.kind = Retry
	*next = c
	r.Target.stats.retries.Add(1)
	return true
}

// noteForm has the Target's language know what an ending says of its form. A misreading
// is the form's fault if the plain form brings a verdict, or nothing in time; if that
// fails too, it is not.
func (r *race) noteForm(end *ending) {
	switch {
	case end.doubtful && r.misread == nil && !r.plain:
		r.misread = end.err
	case end.plain && r.misread != nil && (end.err == nil || end.kind == breaker.TimedOut):
		r.refuse()
	case end.plain && r.misread != nil && end.isAnswer():
		r.Message.Learn(Blameless, time.Now())
	case end.err == nil && !end.plain:
		r.Message.Learn(Read, time.Now())
	}
}

// refuse has the Target sent the plain form for a while. It is called under the lock.
func (r *race) refuse() {
	r.Target.stats.misread.Add(1)
	r.rules.observer.Misread(r.ctx, r.Owner)
	if s := r.Message.Learn(Misread, time.Now()); s != nil {
		s.Err = r.misread
		r.switched(s)
	}
	r.misread = nil
}

func (r *race) switched(s *Switch) {
	s.Owner, s.Target = r.Owner, r.Target
	r.rules.observer.Switched(r.ctx, *s)
}
