// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"cmp"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"github.com/admission-dispatcher/dispatcher/codec"
)

// Verdict is the merged answer for the caller with what it came from. It
// borrows nothing from the Review.
type Verdict struct {
	Response codec.Response
	// Bypass is the name of the rule that let the review pass unasked.
	Bypass string
	// Unreadable reports that the review could not be judged, for the reason in
	// Defect, Panicked that the dispatcher failed. Both deny, and nothing is known of
	// webhooks.
	Unreadable, Panicked bool
	Defect               string // names nothing that the user made up
	// Outcomes are in the order in which the webhooks take part.
	Outcomes []Outcome
	// Skips are there only if Config.KeepSkips asks for them.
	Skips []Skip
}

// maxKeptOutcomes is how many Outcomes a Verdict that is reset keeps the memory of.
const maxKeptOutcomes = 64

// Reset empties v, but for the memory of its Outcomes.
func (v *Verdict) Reset() {
	kept := v.Outcomes[:0]
	if clear(v.Outcomes); cap(kept) > maxKeptOutcomes {
		kept = nil
	}
	*v = Verdict{Outcomes: kept}
}

// merge makes one Verdict of all Outcomes. It is pure: the same Outcomes in any
// order of arrival give the same Verdict.
func merge(a *admission) Verdict {
	slices.SortStableFunc(a.outcomes, func(x, y Outcome) int {
		return cmp.Or(cmp.Compare(x.Round, y.Round), cmp.Compare(x.Position, y.Position))
	})
	v := Verdict{Outcomes: a.outcomes, Skips: a.skips}
	if denials := denialsOf(a.outcomes); len(denials) > 0 {
		v.Response = denial(denials)
	} else {
		v.Response = codec.Response{Allowed: true, Patch: a.patch}
	}
	v.Response.Warnings = warningsOf(a.outcomes)
	v.Response.Annotations, v.Response.DroppedAnnotations = annotationsOf(a.outcomes, a.Snapshot)
	return v
}

// denialsOf returns the denying Outcomes: what webhooks rejected first, then what
// the dispatcher refused, then platform failures, each in configuration order.
func denialsOf(outcomes []Outcome) []*Outcome {
	var denials []*Outcome
	for i := range outcomes {
		if outcomes[i].Denies() {
			denials = append(denials, &outcomes[i])
		}
	}
	slices.SortStableFunc(denials, func(x, y *Outcome) int { return cmp.Compare(x.Result, y.Result) })
	return denials
}

// denial says no: code and reason come from the first denial, the message has the
// lines of each.
func denial(denials []*Outcome) codec.Response {
	first := denials[0]
	resp := codec.Response{
		Code:              first.Code,
		Reason:            reason(first),
		RetryAfterSeconds: first.Response.RetryAfterSeconds,
	}
	if first.Shed() && resp.RetryAfterSeconds == 0 {
		resp.RetryAfterSeconds = retryAfter()
	}
	lines := make([]string, len(denials))
	for i, o := range denials {
		lines[i] = o.message()
		resp.Causes = append(resp.Causes, codec.Cause{Type: causeType(o), Field: o.Webhook.Label(), Message: lines[i]})
	}
	resp.Message = strings.Join(lines, "\n")
	return resp
}

// causeType is the closed word for why an Outcome denies, or would.
func causeType(o *Outcome) string {
	if o.Cause == "" {
		return "Denied"
	}
	return string(o.Cause)
}

// reason is the metav1.StatusReason of a denial: the webhook's own, or the one
// that clients expect with our code.
func reason(o *Outcome) string {
	if o.Result == Denied {
		return o.Response.Reason
	}
	if reason, ok := reasons[o.Code]; ok {
		return reason
	}
	return "InternalError"
}

// reasons are the metav1.StatusReasons of the codes of our own.
var reasons = map[int32]string{
	http.StatusBadRequest:            "BadRequest",
	http.StatusForbidden:             "Forbidden",
	http.StatusNotFound:              "NotFound",
	http.StatusRequestTimeout:        "Timeout",
	http.StatusRequestEntityTooLarge: "RequestEntityTooLarge",
	http.StatusTooManyRequests:       "TooManyRequests",
	http.StatusServiceUnavailable:    "ServiceUnavailable",
	http.StatusGatewayTimeout:        "Timeout",
}

// unreadable is the Verdict on a review that cannot be judged.
func unreadable(d Defect) Verdict {
	v := Verdict{
		Unreadable: true,
		Defect:     cmp.Or(d.Logged, d.Message),
		Response:   codec.Response{Code: d.Code, Reason: reasons[d.Code], Message: d.Message},
	}
	if d.Code == http.StatusTooManyRequests {
		v.Response.RetryAfterSeconds = retryAfter()
	}
	return v
}

// retryAfter is when a caller that was shed may come back, in seconds: not all at
// once.
func retryAfter() int32 { return 1 + rand.Int32N(3) }

// panicked is the Verdict of a dispatcher that failed.
func panicked() Verdict {
	return Verdict{Panicked: true, Response: codec.Response{
		Code:    http.StatusInternalServerError,
		Reason:  "InternalError",
		Message: "Internal error occurred: the dispatcher failed",
	}}
}

// Decision is what an admission came to, in one word. The set is closed.
type Decision uint8

// The decisions. Of several denials the first kind counts, in the order in which
// they are answered: denied, refused, failed.
const (
	// DecisionAllowed: every webhook that was asked had its say, and none objected
	// in a way that counts.
	DecisionAllowed Decision = iota
	// DecisionFailedOpen: allowed although a webhook call failed.
	DecisionFailedOpen
	// DecisionBypassed: allowed without any webhook being asked.
	DecisionBypassed
	// DecisionDenied: a webhook said no.
	DecisionDenied
	// DecisionRefused: the dispatcher had to say no, whatever the failure policy.
	DecisionRefused
	// DecisionFailed: denied because a webhook call failed.
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
