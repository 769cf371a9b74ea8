// SPDX-License-Identifier: Apache-2.0

package dispatcher

// Decision is what an admission came to, in one word. The set is closed.
type Decision uint8

// The decisions. Of several denials the first kind counts, in the order in which
// they are answered: denied, refused, failed.
const (
	// DecisionAllowed: every webhook that was asked had its say, and none objected
	// in a way that counts.
	DecisionAllowed Decision = iota
	// DecisionFailedOpen: allowed although a webhook was not heard.
	DecisionFailedOpen
	// DecisionBypassed: allowed without any webhook being asked.
	DecisionBypassed
	// DecisionDenied: a webhook said no.
	DecisionDenied
	// DecisionRefused: the dispatcher had to say no, whatever the failure policy.
	DecisionRefused
	// DecisionFailed: denied because a webhook was not heard.
	DecisionFailed
	// DecisionUnreadable: denied because the review cannot be judged.
	DecisionUnreadable
	// DecisionPanicked: denied because the dispatcher failed.
	DecisionPanicked

	// Decisions is how many there are.
	Decisions = iota
)

// String returns the decision in the spelling of logs and metrics.
func (d Decision) String() string {
	switch d {
	case DecisionAllowed:
		return "allowed"
	case DecisionFailedOpen:
		return "failed_open"
	case DecisionBypassed:
		return "bypassed"
	case DecisionDenied:
		return "denied"
	case DecisionRefused:
		return "refused"
	case DecisionFailed:
		return "failed"
	case DecisionUnreadable:
		return "unreadable"
	case DecisionPanicked:
		return "panicked"
	}
	return "unknown"
}

// Decision says in one word what the admission came to.
func (v *Verdict) Decision() Decision {
	switch {
	case v.Panicked:
		return DecisionPanicked
	case v.Unreadable:
		return DecisionUnreadable
	case v.Bypass != "":
		return DecisionBypassed
	case !v.Response.Allowed:
		return v.denial()
	case v.FailedOpen():
		return DecisionFailedOpen
	}
	return DecisionAllowed
}

// FailedOpen reports whether any webhook failed open, also where another denied.
func (v *Verdict) FailedOpen() bool {
	return v.any((*Outcome).FailsOpen)
}

// Shed reports whether there was no place for any of the calls: the Outcomes say
// what each webhook's failure policy made of it.
func (v *Verdict) Shed() bool { return v.any((*Outcome).Shed) }

func (v *Verdict) any(is func(*Outcome) bool) bool {
	for i := range v.Outcomes {
		if is(&v.Outcomes[i]) {
			return true
		}
	}
	return false
}

// denial is the kind of the denial that was answered first.
func (v *Verdict) denial() Decision {
	first := Failed
	for i := range v.Outcomes {
		if o := &v.Outcomes[i]; o.Denies() {
			first = min(first, o.Result)
		}
	}
	switch first {
	case Denied:
		return DecisionDenied
	case Refused:
		return DecisionRefused
	}
	return DecisionFailed
}
