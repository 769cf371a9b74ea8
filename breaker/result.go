// SPDX-License-Identifier: Apache-2.0

package breaker

// Result is what an attempt says about the health of the Endpoint. It is not
// the verdict: a webhook that denies everything is in the best of health.
type Result uint8

const (
	// Excluded is an attempt that says nothing. It changes no count; a probe
	// that ends so makes place for another.
	Excluded Result = iota
	// Success is an answer, whatever it says.
	Success
	// Failure is an Endpoint that was reached and gave no usable answer.
	Failure
	// ConnectFailure is an Endpoint that was not reached. It says nothing about the
	// review, nor about the cluster that sent it.
	ConnectFailure
	// reached is what any answer, or the lack of one, is to the Endpoint's own
	// circuit: a connection that works. It says nothing of other connections.
	reached
)

// failed reports whether it counts against a circuit.
func (r Result) failed() bool { return r == Failure || r == ConnectFailure }

// ofConnection is what the result says about connections alone.
func (r Result) ofConnection() Result {
	if r == Failure {
		return reached
	}
	return r
}

// Kind is one way for an attempt to end, as far as a breaker cares.
type Kind uint8

// The ways for an attempt to end. Of tells their Results.
const (
	// Allowed and Denied are valid verdicts.
	Allowed Kind = iota
	Denied
	// BadAnswer is an answer that cannot be verified: another uid, broken
	// JSON, a redirect, too long, cut off between its bytes.
	BadAnswer
	// ServerError is an HTTP status from 500.
	ServerError
	// ClientError is an HTTP status from 400 other than 429: no webhook that
	// works answers a review so.
	ClientError
	// TooManyRequests is HTTP 429: it is well and asks for a pause.
	TooManyRequests
	// TimedOut is an attempt whose time ran out on a connected Endpoint.
	TimedOut
	// Reset is a connection that ended without an answer. A review can bring that
	// about, as one does on which the webhook's server panics.
	Reset
	// Refused, ConnectTimedOut, TLSFailed and DNSFailed are connections that did not
	// come about.
	Refused
	ConnectTimedOut
	TLSFailed
	DNSFailed
	// Canceled is our own cancellation: the verdict did not need this answer.
	Canceled
	// HedgeLost is the twin that was not waited for.
	HedgeLost
	// DeadlineTooShort is a deadline, of a caller's choice, that was too short to
	// tell a webhook that hangs from one that is busy with the review.
	DeadlineTooShort
	// Paused is an attempt during which this process itself stood still.
	Paused
	// NotSent is an attempt that failed on our side before it used the network:
	// out of descriptors, a review that could not be encoded.
	NotSent

	kinds = int(NotSent) + 1
)

// table is the one place that says what counts as a success, what as a failure
// and what as neither. A caller maps its causes to Kinds and judges nothing.
var table = [kinds]Result{
	Allowed: Success,
	Denied:  Success,

	BadAnswer:   Failure,
	ServerError: Failure,
	ClientError: Failure,
	TimedOut:    Failure,
	Reset:       Failure,

	Refused:         ConnectFailure,
	ConnectTimedOut: ConnectFailure,
	TLSFailed:       ConnectFailure,
	DNSFailed:       ConnectFailure,

	TooManyRequests:  Excluded,
	Canceled:         Excluded,
	HedgeLost:        Excluded,
	DeadlineTooShort: Excluded,
	Paused:           Excluded,
	NotSent:          Excluded,
}

// Of returns what an attempt that ended so says about the Endpoint.
func Of(k Kind) Result {
	if int(k) >= kinds {
		return Excluded
	}
	return table[k]
}

// String returns the name in lower case.
func (r Result) String() string {
	switch r {
	case Success:
		return "success"
	case Failure:
		return "failure"
	case ConnectFailure:
		return "connect-failure"
	}
	return "excluded"
}
