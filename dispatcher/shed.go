// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/share"
)

// Limits bound the admissions for which webhooks are being called. Those beyond
// wait a moment and are then shed. Zero values mean the defaults.
type Limits struct {
	Admissions int   // of all clusters together; 1024
	PerCluster int   // of one cluster; half of Admissions
	Bytes      int64 // of their reviews, and of the forms in which these are sent; 512 MiB
}

const (
	defaultAdmissions = 1024
	defaultBytes      = 512 << 20
	// queueWait is how long an admission waits for a slot. A queue smooths a
	// burst; one that is longer than that only makes everybody late.
	queueWait = 10 * time.Millisecond
	// queueLength is how many of one cluster wait.
	queueLength = 64
)

func (l Limits) withDefaults() Limits {
	if l.Admissions == 0 {
		l.Admissions = defaultAdmissions
	}
	if l.PerCluster == 0 {
		l.PerCluster = max(l.Admissions/2, 1)
	}
	if l.Bytes == 0 {
		l.Bytes = defaultBytes
	}
	return l
}

var (
	// errShed is what a caller reads whose admission is not dispatched.
	errShed = errors.New("the admission dispatcher is overloaded")
	// errBusy is what a caller reads whose object is large, and had no turn in time.
	errBusy = errors.New("the admission dispatcher is busy with large objects of this cluster")
)

// admit takes a slot among the admissions for which webhooks are called, once for
// all calls of a, and the bytes of its review, which are counted until nobody holds
// them. Without a slot each webhook that should be called has failed with cause Shed,
// and its failure policy decides what that means.
func (a *admission) admit() error {
	if a.slot == nil && !a.shed {
		a.slot = a.limiter.acquire(a.Cluster.Name, a.uncharged(), time.Now().Add(min(queueWait, time.Until(a.Deadline)/4)))
		a.shed = a.slot == nil
		if !a.shed {
			a.charge(a.slot)
		}
	}
	if a.shed {
		return &hook.CallError{Cause: hook.Shed, Err: errShed}
	}
	return nil
}

// dismiss gives back the slot of a, if it has one.
func (a *admission) dismiss() {
	if a.slot != nil {
		a.slot.release()
	}
}

// uncharged is the size of the review in bytes, as far as nobody counts them.
func (a *admission) uncharged() int64 {
	if a.Review.Body.Charged() {
		return 0
	}
	return int64(a.Review.Body.Len())
}

func (a *admission) charge(t *tenant) {
	if a.Review.Body.Len() > 0 {
		a.Review.Body.Charge(t)
	}
}

// holdShadowed has the bytes of the review counted for a Shadow call, which outlives
// the admission and has no slot. It reports whether there was room for them.
func (a *admission) holdShadowed() bool {
	size := a.uncharged()
	if size == 0 {
		return true
	}
	t := a.limiter.hold(a.Cluster.Name, size, false)
	if t != nil {
		a.charge(t)
	}
	return t != nil
}

// retryAfter is when a caller that was shed may come back, in seconds: not all at
// once.
func retryAfter() int32 { return 1 + rand.Int32N(3) }

// lightWork is up to how many bytes working on an object takes no turn: less than a
// millisecond of one processor.
const lightWork = 64 << 10

// newWorkshop returns the limiter of the work on large objects: applying patches,
// matchConditions, other forms. It takes half of the processors at most, so that
// small admissions always find one, and the clusters take turns.
func newWorkshop() *limiter {
	slots := max(runtime.GOMAXPROCS(0)/2, 1)
	return newLimiter(Limits{Admissions: slots, PerCluster: slots, Bytes: math.MaxInt64}, defaultAdmissions/2)
}

// lookupsPart is the part of all admissions that may wait for a namespace: one in so
// many. A cluster's API decides how long they wait. So clusters whose APIs hang leave
// the other slots alone, however many such clusters there are.
const lookupsPart = 4

func newLookups(l Limits) *share.Pool {
	return share.NewPool(int64(max(l.Admissions/lookupsPart, 1)))
}

// account is what Views are made with: it has forms counted, and the turns taken to
// make them.
type account struct{ admissions, workshop *limiter }

// Hold implements hook.Account: an object may be a thousand times larger once webhooks
// have mutated it.
func (c *account) Hold(cluster string, body *codec.Body, admitted bool) error {
	if body.Len() == 0 || body.Charged() {
		return nil
	}
	t := c.admissions.hold(cluster, int64(body.Len()), admitted)
	if t == nil {
		return errShed
	}
	body.Charge(t)
	return nil
}

// Turn implements hook.Account.
func (c *account) Turn(cluster string, size int, until time.Time) (done func(), err error) {
	if size < lightWork {
		return func() {}, nil
	}
	t := c.workshop.acquire(cluster, 0, until)
	if t == nil {
		return nil, errBusy
	}
	return t.release, nil
}

// takeTurn waits for the cluster's turn to work on size bytes, until the answer must
// be made. Without an error done must be called after the work.
func (a *admission) takeTurn(size int) (done func(), err error) {
	return a.account.Turn(a.Cluster.Name, size, a.Deadline.Add(-hearingTime))
}
