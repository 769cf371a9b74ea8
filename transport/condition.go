// SPDX-License-Identifier: Apache-2.0

package transport

import "github.com/admission-dispatcher/dispatcher/breaker"

// Condition says how an Endpoint fares: what its breaker says, and, as long as that lets
// every call through, how the last attempt or probe ended. The set is closed.
type Condition uint8

// The conditions.
const (
	// Untried: nobody has called it, or connected to it.
	Untried Condition = iota
	// Healthy: the last attempt was answered.
	Healthy
	// Failing: it was reached, and the last attempt had no usable answer.
	Failing
	// Recovering: it has answered again, and is called a growing number of calls at a time.
	Recovering
	// Unreachable: the last attempt or probe could not connect.
	Unreachable
	// Ejected: its circuit is open, or half-open: it is not called, but for one call that
	// tries whether it is back.
	Ejected

	// Conditions is how many there are.
	Conditions = iota
)

var conditionNames = [Conditions]string{
	Untried: "untried", Healthy: "healthy", Failing: "failing", Recovering: "recovering", Unreachable: "unreachable", Ejected: "ejected",
}

// String returns the condition in the spelling of the status and of metrics.
func (c Condition) String() string {
	if int(c) < len(conditionNames) {
		return conditionNames[c]
	}
	return "unknown"
}

// Condition returns how the Endpoint fares, given what its breaker says.
func (e *Endpoint) Condition(state breaker.State) Condition {
	switch state {
	case breaker.Open, breaker.HalfOpen: // where nobody asks, an outage stays half-open
		return Ejected
	case breaker.Ramping:
		return Recovering
	}
	trouble, answered := e.Trouble(), e.Answered()
	switch {
	case trouble != nil && !answered.After(trouble.At) && trouble.Unreached:
		return Unreachable
	case trouble != nil && !answered.After(trouble.At):
		return Failing
	case answered.IsZero():
		return Untried
	}
	return Healthy
}
