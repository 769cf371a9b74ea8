// SPDX-License-Identifier: Apache-2.0

package webhook

import "time"

// A webhook that is sent a form because it has said that it reads it may turn out
// not to: it was rolled back, or one of its replicas was. What it answers then is
// in doubt, and the review goes out once more in plain JSON. A denial is never lost
// over that: it stands unless an attempt in plain JSON brings a valid verdict.

// isDoubtful reports whether an ending is not yet to be taken for an answer: a
// misreading, or an allow in the form in which a denial was perhaps one.
func (r *race) isDoubtful(end *ending) bool {
	return end.misread || r.denial.err != nil && !end.plain && end.allows()
}

// doubt keeps what a doubtful ending says, if it denies. It is called under the lock.
func (r *race) doubt(end *ending) {
	if !end.misread || !end.verdict() || r.holding && r.held.plain {
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

// toPlain has plain JSON sent from now on, and chooses whom to send it to at once,
// if the attempt may be repeated. That takes nothing from the budget: it is the
// Target's first review in this form, and its last for a while in the other.
func (r *race) toPlain(next *choice) bool {
	if r.plain {
		return false
	}
	now := time.Now()
	r.Target.language.refuse(now)
	r.Target.stats.misread.Add(1)
	r.plain = true
	if !r.Repeat.Safe || r.attempts >= maxAttempts || !now.Before(r.Deadline) {
		return false
	}
	c, ok := r.choose()
	c.kind = Retry
	*next = c
	return ok
}
