// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"errors"
	"math/rand/v2"

	"github.com/admission-dispatcher/dispatcher/webhook"
)

// errShed is what a caller reads whose admission is not dispatched.
var errShed = errors.New("the admission dispatcher is overloaded")

// admit takes a place among the admissions for which webhooks are called, once
// for all calls of a. Without one each webhook that should be called has failed
// with cause Shed, and its failure policy says what that means.
func (d *Dispatcher) admit(a *admission) error {
	if !a.admitted && !a.shed {
		a.size = int64(a.Review.Body.Len())
		a.admitted = d.limiter.acquire(a.Cluster.Name, a.size, a.Deadline)
		a.shed = !a.admitted
	}
	if a.shed {
		return &webhook.CallError{Cause: webhook.Shed, Err: errShed}
	}
	return nil
}

// dismiss gives back the place of a, if it has one.
func (d *Dispatcher) dismiss(a *admission) {
	if a.admitted {
		d.limiter.release(a.Cluster.Name, a.size)
	}
}

// retryAfter is when a caller that was shed may come back, in seconds: not all at
// once.
func retryAfter() int32 { return 1 + rand.Int32N(3) }
