// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
)

const (
	maxIdle = 60 * time.Second // below the idle timeouts of usual servers
	// maxAge, less up to a fifth, is how long a connection is kept, so that calls
	// find their way to servers that are new behind an address.
	maxAge      = 10 * time.Minute
	readBuffer  = 16 << 10 // of one exchange; maxHeader where headers need it
	writeBuffer = 32 << 10
	// maxDials bounds the handshakes under way to one Endpoint: hundreds at a time
	// would take longer than each may, on either side.
	maxDials = 32
	probes   = 4 // connections beyond the slots, which probes make
)

// Endpoint is one dialable address of a Target; it owns the connections to it. What goes
// over them is exchange's.
type Endpoint struct {
	address     netip.AddrPort
	origin      *origin
	connections connections
	breaker     *breaker.Breaker
	slots       slotPool
	dials       chan struct{}                      // has an element for each handshake under way
	connect     func(time.Duration) (*conn, error) // dial

	outstanding atomic.Int64 // attempts under way
	record      record       // how they end

	// What follows is set once, by the Client that calls first.
	once   sync.Once
	dialer dialer
	limit  int // bytes of an answer's body
}

func newEndpoint(o *origin, address netip.AddrPort, s breaker.Settings) *Endpoint {
	e := &Endpoint{address: address, origin: o, breaker: breaker.New(s), dials: make(chan struct{}, maxDials)}
	e.slots.holders = map[holder]*holding{}
	e.connect = e.dial
	return e
}

// Address returns the address that is dialled.
func (e *Endpoint) Address() netip.AddrPort { return e.address }

// Health returns what the Endpoint's breaker says as of now.
func (e *Endpoint) Health() breaker.Status { return e.breaker.Status() }

// Outstanding returns the number of attempts under way.
func (e *Endpoint) Outstanding() int { return int(e.outstanding.Load()) }

// warm sees to it that there is an idle connection, a new one if need be.
func (e *Endpoint) warm(timeout time.Duration) error {
	c := e.connections.take()
	if c == nil {
		var err error
		if c, err = e.open(timeout); err != nil {
			return err
		}
	}
	e.rest(c, true, time.Now())
	return nil
}

// open returns a new connection.
func (e *Endpoint) open(timeout time.Duration) (*conn, error) {
	if !e.connections.grow() {
		return nil, errManyOpen
	}
	c, err := e.connect(timeout)
	if err != nil {
		e.connections.gone()
	}
	return c, err
}

// rest keeps a connection after its use, or closes it if it is not clean or not to be kept.
func (e *Endpoint) rest(c *conn, clean bool, now time.Time) {
	if !clean || !c.rest(now) || !e.connections.keep(c, now) {
		e.drop(c)
	}
}

// drop closes a connection.
func (e *Endpoint) drop(c *conn) {
	e.connections.gone()
	_ = c.Close()
}
