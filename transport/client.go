// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"
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

const (
	defaultConnectTimeout = time.Second
	defaultResponseLimit  = 4 << 20
	defaultConcurrency    = 256
	userAgent             = "admission-dispatcher"
)

// Client calls webhooks. It is safe for concurrent use. It must be closed.
type Client struct {
	dialer        dialer
	responseLimit int
	concurrency   int
	observer      Observer
	running       sync.WaitGroup // races and probes: attempts may outlive their Call
	workers       workers
	races         sync.Pool // of *race
	waiters       sync.Pool // of waiter
	requests      sync.Pool // of *request
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
	rules := &rules{exchange: c.exchange, start: c.launch, free: c.forget, observer: c.observer}
	c.races.New = func() any { return &race{rules: rules} }
	c.requests.New = func() any { return new(request) }
	c.waiters.New = func() any { return make(waiter, 1) }
	if c.dialer.dial == nil {
		c.dialer.dial = dialTCP
	}
	if c.dialer.timeout == 0 {
		c.dialer.timeout = defaultConnectTimeout
	}
	if c.responseLimit == 0 {
		c.responseLimit = defaultResponseLimit
	}
	if c.concurrency == 0 {
		c.concurrency = defaultConcurrency
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
