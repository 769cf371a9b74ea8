// SPDX-License-Identifier: Apache-2.0

// Package overload shares out among the clusters what their admissions take of this
// process, so that one cluster's storm is that cluster's alone.
package overload

import (
	"cmp"
	"errors"
	"math"
	"runtime"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/share"
)

// Limits bound the admissions for which webhooks are being called. Those beyond
// wait a moment and are then shed. Zero values mean the defaults, which stand below.
type Limits struct {
	Admissions int   // of all clusters together
	PerCluster int   // of one cluster
	Bytes      int64 // of their reviews, and of the forms in which these are sent
	// ShadowCalls bounds the Shadow calls under way. Above it they are dropped.
	ShadowCalls int
}

// The defaults of Limits.
const (
	DefaultAdmissions  = 1024
	DefaultPerCluster  = DefaultAdmissions / clusterPart
	DefaultBytes       = 512 << 20
	DefaultShadowCalls = 256
)

const (
	// queueWait is how long an admission waits for a slot. A queue smooths a
	// burst; one that is longer than that only makes everybody late.
	queueWait = 10 * time.Millisecond
	// queueLength is how many of one cluster wait.
	queueLength = 64
	// clusterPart is the part of all admissions that one cluster may have: one in so many.
	clusterPart = 2
	// lookupsPart is the part of all admissions that may wait for a cluster's API: one in so
	// many. That API decides how long they wait. So clusters whose APIs hang leave
	// the other slots alone, however many such clusters there are.
	lookupsPart = 4
	// undosPart is how many may be undone, for each of all admissions. There are more
	// than admissions need, so that only those that hang use them up.
	undosPart = 2
)

func (l Limits) withDefaults() Limits {
	l.Admissions = cmp.Or(l.Admissions, DefaultAdmissions)
	l.PerCluster = cmp.Or(l.PerCluster, max(l.Admissions/clusterPart, 1))
	l.Bytes = cmp.Or(l.Bytes, DefaultBytes)
	l.ShadowCalls = cmp.Or(l.ShadowCalls, DefaultShadowCalls)
	return l
}

var (
	// errShed is what a caller reads whose admission is not dispatched.
	errShed = errors.New("the admission dispatcher is overloaded")
	// errBusy is what a caller reads whose object is large, and had no turn in time.
	errBusy = errors.New("the admission dispatcher is busy with large objects of this cluster")
	// errUndo is what a caller reads while what was done for it cannot be undone.
	errUndo = errors.New("too much of what was done for this cluster is still to be undone")
)

// Capacity is what there is for the admissions of all clusters. Whatever a cluster asks
// for it gets, or an error that says that there is no more of it for this cluster.
// It is safe for concurrent use.
type Capacity struct {
	limits     Limits
	admissions *limiter    // that call webhooks, and bytes
	workshop   *limiter    // of the work on large objects
	lookups    *share.Pool // in clusters, under way
	shadows    *share.Pool // calls under way
	undos      *share.Pool // that run, or may become necessary
}

// New returns a Capacity within the limits.
func New(l Limits) *Capacity {
	l = l.withDefaults()
	return &Capacity{
		limits:     l,
		admissions: newLimiter(l, queueLength),
		workshop:   newWorkshop(),
		lookups:    share.NewPool(int64(max(l.Admissions/lookupsPart, 1))),
		shadows:    share.NewPool(int64(l.ShadowCalls)),
		undos:      share.NewPool(undosPart * int64(l.Admissions)),
	}
}

// Limits returns the limits in effect.
func (c *Capacity) Limits() Limits {
	l := c.limits
	l.PerCluster = c.admissions.perCluster()
	return l
}

// LimitCluster sets how many admissions one cluster may have from now on: at least 1,
// and at most what the Capacity was made with. Those under way stay.
func (c *Capacity) LimitCluster(admissions int) {
	c.admissions.limitTenants(min(max(admissions, 1), c.limits.PerCluster))
}

// A Slot is that of one admission. The zero value is none.
type Slot struct{ of *tenant }

// Release gives the slot back, if it is one. It must be called once.
func (s Slot) Release() {
	if s.of != nil {
		s.of.release()
	}
}

// Admit waits a moment for a slot among the admissions for which webhooks are called,
// and for room for the review, which is counted until nobody holds it.
func (c *Capacity) Admit(cluster string, review *codec.Body, deadline time.Time) (Slot, error) {
	size := uncharged(review)
	t := c.admissions.acquire(cluster, size, func() time.Duration { return min(queueWait, time.Until(deadline)/4) })
	if t == nil {
		return Slot{}, errShed
	}
	if size > 0 {
		review.Charge(t)
	}
	return Slot{t}, nil
}

// uncharged is the size of body in bytes, as far as nobody counts them.
func uncharged(body *codec.Body) int64 {
	if body.Charged() {
		return 0
	}
	return int64(body.Len())
}

// Hold has the bytes of body counted as the cluster's until nobody holds them: an object
// may be a thousand times larger once webhooks have mutated it. admitted: they are for an
// admission that has a slot.
func (c *Capacity) Hold(cluster string, body *codec.Body, admitted bool) error {
	size := uncharged(body)
	if size == 0 {
		return nil
	}
	t := c.admissions.hold(cluster, size, admitted)
	if t == nil {
		return errShed
	}
	body.Charge(t)
	return nil
}

// LookUp takes one of the lookups in clusters that may be under way, whatever those are
// asked for, for an admission that has a slot, until done.
func (c *Capacity) LookUp(cluster string) (done func(), err error) {
	if !c.lookups.Take(cluster, 1, 0) {
		return nil, errShed
	}
	return func() { c.lookups.Give(cluster, 1) }, nil
}

// Undo takes the room to undo what a Hook is about to do, until done: when that has been
// undone, or need not be.
func (c *Capacity) Undo(cluster string) (done func(), err error) {
	if !c.undos.Take(cluster, 1, 0) {
		return nil, errUndo
	}
	return func() { c.undos.Give(cluster, 1) }, nil
}

// Shadow takes one of the Shadow calls that may be under way until done, and has the
// review counted, which the call outlives. It never waits, and takes no slot.
func (c *Capacity) Shadow(cluster string, review *codec.Body) (done func(), err error) {
	if err := c.Hold(cluster, review, false); err != nil {
		return nil, err
	}
	if !c.shadows.Take(cluster, 1, 0) {
		return nil, errShed
	}
	return func() { c.shadows.Give(cluster, 1) }, nil
}

// LightWork is up to how many bytes working on an object takes no turn: less than a
// millisecond of one processor.
const LightWork = 64 << 10

// newWorkshop returns the limiter of the work on large objects: applying patches,
// matchConditions, other forms. It takes half of the processors at most, so that
// small admissions always find one, and the clusters take turns.
func newWorkshop() *limiter {
	slots := max(runtime.GOMAXPROCS(0)/2, 1)
	return newLimiter(Limits{Admissions: slots, PerCluster: slots, Bytes: math.MaxInt64}, DefaultPerCluster)
}

// Turn waits until the given time for the cluster's turn to work on so many bytes.
// Without an error done must be called after the work.
func (c *Capacity) Turn(cluster string, size int, until time.Time) (done func(), err error) {
	if size < LightWork {
		return func() {}, nil
	}
	t := c.workshop.acquire(cluster, 0, func() time.Duration { return time.Until(until) })
	if t == nil {
		return nil, errBusy
	}
	return t.done, nil
}

// Usage is what is taken at one time.
type Usage struct {
	Admissions map[string]int // slots by cluster, without clusters that have none
	Bytes      int64
}

// Usage returns what is taken now.
func (c *Capacity) Usage() Usage { return c.admissions.usage() }
