// SPDX-License-Identifier: Apache-2.0

// Package dispatcher makes the decision: one Review in, one Verdict out.
package dispatcher

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher/overload"
	"github.com/admission-dispatcher/dispatcher/exempt"
	"github.com/admission-dispatcher/dispatcher/internal/crash"
	"github.com/admission-dispatcher/dispatcher/internal/throttle"
)

// Config is the configuration of a Dispatcher.
type Config struct {
	Grace time.Duration // how long others may still answer after the first denial; 0: not at all
	// Impatience bounds a serial call whose failure is ignored, where others follow; 1 s.
	Impatience time.Duration
	Limits     overload.Limits
	// Transcoder makes the objects of webhooks that take them as native protobuf; none: nobody gets that.
	Transcoder codec.Transcoder
	// AllowsPerSecond is how many allowed admissions get a line at level info in
	// each second; at level debug all get one. 0: none.
	AllowsPerSecond int
	KeepSkips       bool             // observers want to know who was not asked, and why
	Observers       []Observer       // told of every admission, in this order
	Shadows         []ShadowObserver // told of every invocation in mode Shadow
	Logger          *slog.Logger     // required
}

// DefaultImpatience is the default of Config.Impatience.
const DefaultImpatience = time.Second

func (c Config) validate() error {
	switch {
	case c.Logger == nil:
		return errors.New("dispatcher: Config.Logger is required")
	case c.Grace < 0:
		return errors.New("dispatcher: Config.Grace is negative")
	case c.Impatience < 0:
		return errors.New("dispatcher: Config.Impatience is negative")
	case c.Limits.Admissions < 0 || c.Limits.PerCluster < 0 || c.Limits.Bytes < 0 || c.Limits.ShadowCalls < 0:
		return errors.New("dispatcher: Config.Limits has a negative value")
	}
	return nil
}

// Dispatcher decides admissions. It is safe for concurrent use.
type Dispatcher struct {
	grace      time.Duration
	impatience time.Duration
	capacity   *overload.Capacity
	shadows    []ShadowObserver
	transcoder codec.Transcoder
	keepSkips  bool
	recorder   recorder

	calls      sync.WaitGroup // those that may outlive their Dispatch
	batches    sync.Pool      // of *batch
	admissions sync.Pool      // of *admission
}

// New returns a Dispatcher.
func New(cfg Config) (*Dispatcher, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Impatience == 0 {
		cfg.Impatience = DefaultImpatience
	}
	return &Dispatcher{
		grace:      cfg.Grace,
		impatience: cfg.Impatience,
		capacity:   overload.New(cfg.Limits),
		shadows:    cfg.Shadows,
		transcoder: cfg.Transcoder,
		keepSkips:  cfg.KeepSkips,
		recorder: recorder{
			log:       cfg.Logger,
			observers: cfg.Observers,
			allows:    throttle.Throttle{Burst: cfg.AllowsPerSecond, Window: time.Second},
			denials:   throttle.PerCluster{Burst: denialsPerSecond, Window: time.Second},
			records:   sync.Pool{New: func() any { return new(Record) }},
		},
		admissions: sync.Pool{New: func() any { return new(admission) }},
	}, nil
}

// Request is one admission to decide.
type Request struct {
	Review   *codec.Review // retained as long as a Hook uses it
	Cluster  *chain.Cluster
	Server   *chain.APIServer // which of its API servers asks; nil: its kube-apiserver
	Phase    chain.Phase
	Path     *chain.Path // which webhooks are considered; nil: all of the phase
	Outdated bool        // the cluster called a path that its registration no longer has
	Snapshot string      // short hash of the Snapshot that Cluster is from
	Deadline time.Time   // when the Verdict must be there
	// Delivery must be settled after Dispatch, also if that panics. nil: a Verdict
	// counts as delivered.
	Delivery *Delivery

	// What traces say of the call: when its headers came (zero: just now), and by
	// which name, perhaps with a port, the caller called us. Host is borrowed.
	Arrived time.Time
	Host    []byte
}

// Dispatch decides one admission, logs the decision and notifies the observers. The
// decision is in v, which is the caller's: what it said is gone, and the memory of its
// Outcomes is used again. Dispatch returns before req.Deadline, whatever the webhooks do.
// A panic on the way is a denial. ctx carries shutdown and trace only.
func (d *Dispatcher) Dispatch(ctx context.Context, req Request, v *Verdict) {
	start := time.Now()
	v.Reset()
	d.contained(ctx, req, v)
	d.recorder.publish(ctx, req, v, start)
}

// Defect is why a review cannot be judged.
type Defect struct {
	Code    int32  // of the denial
	Message string // for the user
	Logged  string // Message for the log, without what the user made up; empty: as Message
}

// Decline denies an admission whose review cannot be judged: of req.Review no more
// is there than was read before the defect. It is logged and observers are notified
// as of what Dispatch decides.
func (d *Dispatcher) Decline(ctx context.Context, req Request, defect Defect, v *Verdict) {
	*v = unreadable(defect)
	d.recorder.publish(ctx, req, v, time.Now())
}

// contained is dispatch, with a panic as a denial.
func (d *Dispatcher) contained(ctx context.Context, req Request, v *Verdict) {
	defer func() {
		if value := recover(); value != nil {
			d.recorder.panicked(ctx, crash.Text(value), debug.Stack())
			*v = panicked()
		}
	}()
	d.dispatch(ctx, req, v)
}

// dispatch decides one review against one snapshot. Once a phase has rejected,
// the later steps do nothing.
func (d *Dispatcher) dispatch(ctx context.Context, req Request, v *Verdict) {
	if rule, ok := bypass(req); ok {
		outcomes := v.Outcomes // none, and memory for others
		*v = bypassed(rule, req.Snapshot)
		v.Outcomes = outcomes
		return
	}
	a := d.newAdmission(ctx, req)
	a.outcomes = v.Outcomes
	defer a.release()
	defer func() { a.slot.Release() }()
	defer func() { a.settleTransactions(v) }() // also after a panic, which denies
	if req.Phase == chain.Mutating {
		a.mutate()
	} else {
		a.validate()
	}
	a.tellUncalledShadows()
	*v = merge(a)
}

// exemptKind is the bypass of resources that the cluster's kube-apiserver itself
// never sends to webhooks. It cannot be configured away.
const exemptKind = "exempt-kind"

// bypass returns the rule by which a request is not dispatched at all. It looks
// at fields only that the request's user cannot choose.
func bypass(req Request) (rule string, ok bool) {
	if exempt.ConfiguresAdmission(req.Review) || exempt.IsAuthReview(req.Review) && req.Cluster.ExemptsAuthReviews() {
		return exemptKind, true
	}
	return req.Cluster.Bypass.Match(req.Review)
}

// bypassed is the Verdict of a bypass: allowed, and visibly so.
func bypassed(rule, snapshot string) Verdict {
	return Verdict{
		Bypass: rule,
		Response: codec.Response{
			Allowed: true,
			Annotations: []codec.Annotation{
				{Key: bypassAnnotation, Value: rule},
				{Key: snapshotAnnotation, Value: snapshot},
			},
		},
	}
}

// InFlight returns the number of admissions for which webhooks are being called,
// by cluster; clusters without any are left out.
func (d *Dispatcher) InFlight() map[string]int { return d.capacity.Usage().Admissions }

// Limits returns the limits in effect.
func (d *Dispatcher) Limits() overload.Limits { return d.capacity.Limits() }

// LimitCluster sets how many admissions of one cluster may call webhooks at a time, from
// now on: 1 to Config.Limits.PerCluster.
func (d *Dispatcher) LimitCluster(admissions int) { d.capacity.LimitCluster(admissions) }

// Wait returns when no call runs any more: after Dispatch has returned, calls
// whose answer nobody needs (late ones, Shadow) run to their deadline, and what was
// done is taken back, for 3 s at most. Wait waits for each open Delivery to be settled,
// and must not race with Dispatch.
func (d *Dispatcher) Wait() { d.calls.Wait() }
