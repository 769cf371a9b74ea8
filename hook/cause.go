// SPDX-License-Identifier: Apache-2.0

package hook

// Cause is why there is no usable answer of a webhook. The set is closed; the
// same word stands in messages, details.causes, metrics, logs and spans.
type Cause string

// The causes, as docs/contract.md lists them below the rows C.
const (
	Timeout        Cause = "Timeout"
	NoTimeLeft     Cause = "NoTimeLeft"
	Unreachable    Cause = "Unreachable"
	BreakerOpen    Cause = "BreakerOpen"
	TLS            Cause = "TLS"
	HTTPStatus     Cause = "HTTPStatus"
	BadAnswer      Cause = "BadAnswer"
	BadPatch       Cause = "BadPatch"
	NotConvertible Cause = "NotConvertible"
	Panic          Cause = "Panic"
	Shed           Cause = "Shed"
	Pending        Cause = "Pending"
	MatchError     Cause = "MatchError"
	DryRun         Cause = "DryRun"
	Evaluation     Cause = "Evaluation"
)

// Causes returns all of them. The labels of metrics and the documentation are
// tested against it.
func Causes() []Cause {
	return []Cause{
		Timeout, NoTimeLeft, Unreachable, BreakerOpen, TLS, HTTPStatus, BadAnswer,
		BadPatch, NotConvertible, Panic, Shed, Pending, MatchError, DryRun, Evaluation,
	}
}

// Code returns the HTTP status code of a denial for this cause.
func (c Cause) Code() int32 {
	switch c {
	case Timeout, NoTimeLeft:
		return 504
	case Unreachable, BreakerOpen, TLS, Pending:
		return 503
	case Shed:
		return 429
	case MatchError:
		return 403
	case DryRun:
		return 400
	}
	return 500
}
