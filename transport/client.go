// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/hook"
	"github.com/admission-dispatcher/dispatcher/internal/worker"
)

// Call is one question to one Target.
type Call struct {
	Target *Target
	// Message is what is sent. The caller keeps its own reference until Start has
	// returned; the call has one for as long as an attempt may need it.
	Message Message
	// Cluster is sent as the Admission-Cluster header. What its reviews bring about
	// counts against it alone.
	Cluster string
	// Resource is what the review is about, such as "apps/deployments": failures
	// on one resource do not keep the webhook from being asked about others.
	Resource string
	// Shadow: nobody waits for the answer. It takes no slot from calls that decide.
	Shadow bool
	// Deadline is when the answer must be there: the webhook's own timeout and
	// the time left for the admission, whichever is first.
	Deadline time.Time
	// Timeout is what the call would have had if the caller had left it the time. A
	// much earlier Deadline that passes says little about the webhook. 0: unknown.
	Timeout time.Duration
	// Wait: rather than fail because of the open circuit of a webhook that hangs, the
	// call waits until the Deadline, as it would for the webhook itself.
	Wait bool
	// Over is true once nobody needs the answer any more: no review is sent from then
	// on. It is looked at until the Receiver is notified. nil: it is needed to the end.
	Over   *atomic.Bool
	Repeat Repeat
	// Owner is whose call it is, for the Observer; nothing else looks at it.
	Owner hook.ID
}

// Repeat says whether, and when, one call may make more than one attempt. The zero
// value makes one; only a request of which not a byte has left is sent again.
type Repeat struct {
	// Safe: the call has no side effects.
	Safe bool
	// NoHedge: no second attempt while the first is under way.
	NoHedge bool
	// Failures: any failed attempt is repeated, not only a broken connection.
	Failures bool
	// DenyWins: while a hedge is under way, an allow waits a moment for a denial.
	DenyWins bool
}

// ClientConfig is the configuration of a Client. Zero values mean the defaults.
type ClientConfig struct {
	Addresses      AddressPolicy // which addresses may be dialled
	ConnectTimeout time.Duration // TCP and TLS together; 1 s
	// Dial opens a connection by the deadline of ctx, without TLS. Default: TCP.
	Dial          func(ctx context.Context, address netip.AddrPort) (net.Conn, error)
	ResponseLimit int // bytes of an answer's body; 4 MiB
	Concurrency   int // attempts under way to one Endpoint; 512
	// Allowed returns how many of Concurrency are allowed now, at least 1. It is called
	// for every attempt, under a lock: it must be quick. nil: all are.
	Allowed  func() int
	Observer Observer // told what calls do; default: nobody is
}

// The defaults of ClientConfig.
const (
	DefaultConnectTimeout = time.Second
	DefaultResponseLimit  = 4 << 20
	DefaultConcurrency    = 512
)

// maxIdleWorkers is how many goroutines are kept for the attempts to come.
const maxIdleWorkers = 256

// Client calls webhooks. It is safe for concurrent use. It must be closed.
type Client struct {
	dialer        dialer
	responseLimit int
	concurrency   int
	allowed       func() int
	observer      Observer
	running       sync.WaitGroup    // races and probes: attempts may outlive their Call
	workers       worker.Pool[work] // make attempts, but for what who asks makes of the first
	races         sync.Pool         // of *race
	waiters       sync.Pool         // of waiter
}

// NewClient returns a Client.
func NewClient(cfg ClientConfig) *Client {
	c := &Client{
		dialer:        dialer{policy: cfg.Addresses, timeout: cfg.ConnectTimeout, dial: cfg.Dial},
		responseLimit: cfg.ResponseLimit,
		concurrency:   cfg.Concurrency,
		allowed:       cfg.Allowed,
		observer:      cfg.Observer,
	}
	if c.observer == nil {
		c.observer = Silent{}
	}
	c.workers.Do, c.workers.Idle = func(w work) { w.race.follow(w.step) }, maxIdleWorkers
	common := &common{exchange: exchange, adopt: c.adopt, start: c.launch, free: c.forget, observer: c.observer}
	c.races.New = func() any { return &race{common: common} }
	c.waiters.New = func() any { return make(waiter, 1) }
	if c.dialer.dial == nil {
		c.dialer.dial = dialTCP
	}
	if c.dialer.timeout == 0 {
		c.dialer.timeout = DefaultConnectTimeout
	}
	if c.responseLimit == 0 {
		c.responseLimit = DefaultResponseLimit
	}
	if c.concurrency == 0 {
		c.concurrency = DefaultConcurrency
	}
	return c
}

// Start asks, perhaps more than once, and tells to a verified answer or an error:
// a *hook.CallError, or a *codec.AnswerError whose Denies is set. ctx carries shutdown
// and trace; the deadline is the Call's. A hedge that lost may run on, to the deadline.
// An Outstanding that is not nil must be awaited or left: the request is sent, and nobody
// reads its answer yet. Start does not wait for a webhook.
func (c *Client) Start(ctx context.Context, call Call, to hook.Receiver) hook.Outstanding {
	now := time.Now()
	if !now.Before(call.Deadline) {
		to.Receive(codec.Response{}, &hook.CallError{Cause: hook.NoTimeLeft, Err: errNoTimeLeft})
		return nil
	}
	r := c.races.Get().(*race)
	r.ctx, r.Call, r.to = ctx, call, to
	r.Message.Retain()
	c.running.Add(1)
	if r.run(now) {
		return r
	}
	return nil
}

// Call is Start for who waits for the answer.
func (c *Client) Call(ctx context.Context, call Call) (codec.Response, error) {
	w := c.waiters.Get().(waiter)
	if o := c.Start(ctx, call, hook.NewReceiver(w, 0)); o != nil {
		o.Await()
	}
	got := <-w
	c.waiters.Put(w)
	return got.resp, got.err
}

func (c *Client) launch(r *race, s step) { c.workers.Run(work{r, s}) }

// forget keeps the memory of a race for the next.
func (c *Client) forget(r *race) {
	*r = race{common: r.common, timer: r.timer}
	c.races.Put(r)
	c.running.Done()
}

// Close returns when no attempt runs any more. It must not race with calls.
func (c *Client) Close() {
	c.running.Wait()
	c.workers.Close()
}

// adopt makes the Endpoint connect as this Client does, if no other came first.
func (c *Client) adopt(e *Endpoint) {
	e.once.Do(func() {
		e.dialer = c.dialer
		e.limit, e.connections.most = c.responseLimit, c.concurrency+probes
		e.slots.free, e.slots.limit, e.slots.allowed = c.concurrency, c.concurrency, c.allowed
	})
}

// Probe connects to the Endpoints of a Target, 16 of them at most, TLS and its verification included,
// keeps the connections for the calls to come, and has each Endpoint remember how that
// ended. It returns nil if at least one answers within the timeout; otherwise a
// *hook.CallError that says what is wrong.
func (c *Client) Probe(t *Target, timeout time.Duration) error {
	endpoints := t.Endpoints()
	if len(endpoints) == 0 {
		return &hook.CallError{Cause: hook.Unreachable, Err: t.whyNoEndpoint()}
	}
	if len(endpoints) > maxWarmed { // others the next time
		endpoints = slices.Clone(endpoints)
		rand.Shuffle(len(endpoints), func(i, j int) { endpoints[i], endpoints[j] = endpoints[j], endpoints[i] })
		endpoints = endpoints[:maxWarmed]
	}
	results := make(chan error, len(endpoints))
	for _, e := range endpoints {
		c.running.Go(func() {
			c.adopt(e)
			results <- e.look(timeout, t.host)
		})
	}
	var errs []error
	for range endpoints {
		err := <-results
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	cause := hook.Unreachable
	if failed, ok := errors.AsType[*hook.CallError](errs[0]); ok {
		cause = failed.Cause
	}
	return &hook.CallError{Cause: cause, Err: errors.Join(errs...)}
}

// maxWarmed bounds the Endpoints that Warm and Probe connect to: the owner of a name decides
// how many addresses it has.
const maxWarmed = 16

// Warm connects to Endpoints that are new, TLS and its verification included, and
// keeps the connections for the calls to come. It returns after the connect timeout
// at the latest. The first call connects to an Endpoint that has not answered by
// then, or that is beyond the first 16.
func (c *Client) Warm(endpoints []*Endpoint) {
	var all sync.WaitGroup
	for _, e := range endpoints[:min(len(endpoints), maxWarmed)] {
		c.running.Add(1)
		all.Go(func() {
			defer c.running.Done()
			c.adopt(e)
			_ = e.warm(c.dialer.timeout) // the first call says what is wrong
		})
	}
	all.Wait()
}

// work is the step with which a race goes on without who asked.
type work struct {
	race *race
	step step
}

// waiter takes the answer for who waits. It keeps nothing of it.
type waiter chan received

type received struct {
	resp codec.Response
	err  error
}

// Answered implements hook.Asker. A race answers once.
func (w waiter) Answered(_ uint64, resp codec.Response, err error) { w <- received{resp, err} }
