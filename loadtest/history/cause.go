// SPDX-License-Identifier: Apache-2.0

package history

import "net/http"

// Cause is the word for why there was no usable answer; docs/contract.md has
// the closed list.
type Cause string

// The causes.
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

// codes returns the status codes that a denial with the cause may have.
func (c Cause) codes() []int32 {
	switch c {
	case Timeout, NoTimeLeft:
		return []int32{http.StatusGatewayTimeout}
	case Unreachable, BreakerOpen, TLS, Pending:
		return []int32{http.StatusServiceUnavailable}
	case Shed:
		return []int32{http.StatusTooManyRequests}
	case MatchError:
		return []int32{http.StatusForbidden, http.StatusNotFound}
	case DryRun:
		return []int32{http.StatusBadRequest}
	case HTTPStatus, BadAnswer, BadPatch, NotConvertible, Panic, Evaluation:
		return []int32{http.StatusInternalServerError}
	}
	return nil
}
