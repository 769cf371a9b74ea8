// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/worker"
)

// ClientConfig is the configuration of a Client. Zero values mean the defaults.
type ClientConfig struct {
	Addresses      AddressPolicy // which addresses may be dialled
	ConnectTimeout time.Duration // TCP and TLS together; 1 s
	// Dial opens a connection by the deadline of ctx, without TLS. Default: TCP.
	Dial          func(ctx context.Context, address netip.AddrPort) (net.Conn, error)
	ResponseLimit int      // bytes of an answer's body; 4 MiB
	Concurrency   int      // attempts under way to one Endpoint; 256
	Observer      Observer // told what calls do; default: nobody is
}

// The defaults of ClientConfig.
const (
	DefaultConnectTimeout = time.Second
	DefaultResponseLimit  = 4 << 20
	DefaultConcurrency    = 256
)

const (
	userAgent = "admission-dispatcher"

	// maxIdleWorkers is how many goroutines wait for attempts to come.
	maxIdleWorkers = 256
)

// Client calls webhooks. It is safe for concurrent use. It must be closed.
type Client struct {
	dialer        dialer
	responseLimit int
	concurrency   int
	observer      Observer
	running       sync.WaitGroup    // races and probes: attempts may outlive their Call
	workers       worker.Pool[work] // make attempts
	races         sync.Pool         // of *race
	waiters       sync.Pool         // of waiter
	requests      sync.Pool         // of *request
}

// NewClient returns a Client.
func NewClient(cfg ClientConfig) *Client {
	c := &Client{
		dialer:        dialer{policy: cfg.Addresses, timeout: cfg.ConnectTimeout, dial: cfg.Dial},
		responseLimit: cfg.ResponseLimit,
		concurrency:   cfg.Concurrency,
		observer:      cfg.Observer,
	}
	if c.observer == nil {
		c.observer = Silent{}
	}
	c.workers.Do, c.workers.Idle = func(w work) { w.race.follow(w.first) }, maxIdleWorkers
	common := &common{exchange: c.exchange, start: c.launch, free: c.forget, observer: c.observer}
	c.races.New = func() any { return &race{common: common} }
	c.requests.New = func() any { return new(request) }
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

// adopt makes the Endpoint connect as this Client does, if no other came first.
func (c *Client) adopt(e *Endpoint) {
	e.once.Do(func() {
		e.dialer = c.dialer
		e.pool.MaxResponseBodySize, e.pool.MaxConns = c.responseLimit, c.concurrency+probes
		e.slots.free = c.concurrency
	})
}

// Probe connects to the Endpoints of a Target, TLS and its verification included,
// and keeps the connections for the calls to come. It returns nil if at least
// one answers within the timeout, and says what is wrong otherwise.
func (c *Client) Probe(t *Target, timeout time.Duration) error {
	endpoints := t.Endpoints()
	if len(endpoints) == 0 {
		return t.whyNoEndpoint()
	}
	results := make(chan error, len(endpoints))
	for _, e := range endpoints {
		c.running.Go(func() { results <- c.warm(e, timeout) })
	}
	var errs []error
	for range endpoints {
		err := <-results
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("%s: %w", t.host, errors.Join(errs...))
}

// maxWarmed bounds the Endpoints that Warm connects to: the owner of a name decides
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
			_ = c.warm(e, c.dialer.timeout) // the first call says what is wrong
		})
	}
	all.Wait()
}

// warm puts a new connection into the Endpoint's pool.
func (c *Client) warm(e *Endpoint, timeout time.Duration) error {
	c.adopt(e)
	cc, err := e.pool.AcquireConn(timeout, false)
	if err != nil {
		return err
	}
	if cc.Conn().(*conn).rest() {
		e.pool.ReleaseConn(cc)
		e.closeIfRetired()
	} else {
		e.pool.CloseConn(cc)
	}
	return nil
}
