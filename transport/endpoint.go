// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/admission-dispatcher/dispatcher/breaker"
)

const (
	maxIdle = 60 * time.Second // below the idle timeouts of usual servers
	// maxAge, less up to a fifth, is how long a connection is kept, so that calls
	// find their way to servers that are new behind an address.
	maxAge      = 10 * time.Minute
	readBuffer  = 16 << 10 // of one connection; maxHeader where headers need it
	writeBuffer = 32 << 10
	// maxDials bounds the handshakes under way to one Endpoint: hundreds at a time
	// would take longer than each may, on either side.
	maxDials = 32
	probes   = 4 // connections beyond the slots, which probes make
)

// Endpoint is one dialable address of a Target; it owns a connection pool.
// fasthttp keeps the connections; what goes over them is exchange's.
type Endpoint struct {
	address netip.AddrPort
	origin  *origin
	pool    fasthttp.HostClient
	retired atomic.Bool // no connection is kept any more
	breaker *breaker.Breaker
	slots   slotPool
	dials   chan struct{} // has an element for each handshake under way

	outstanding atomic.Int64 // attempts under way

	once   sync.Once
	dialer dialer // set once, by the Client that calls first
}

func newEndpoint(o *origin, address netip.AddrPort, s breaker.Settings) *Endpoint {
	e := &Endpoint{address: address, origin: o, breaker: breaker.New(s), dials: make(chan struct{}, maxDials)}
	e.slots.holders = map[holder]*holding{}
	e.pool = fasthttp.HostClient{
		Addr:                address.String(),
		IsTLS:               true,
		DialTimeout:         func(_ string, timeout time.Duration) (net.Conn, error) { return e.dial(timeout) },
		MaxIdleConnDuration: maxIdle,
		ReadBufferSize:      readBuffer,
		WriteBufferSize:     writeBuffer,
	}
	return e
}

// Address returns the address that is dialled.
func (e *Endpoint) Address() netip.AddrPort { return e.address }

// Health returns what the Endpoint's breaker says as of now.
func (e *Endpoint) Health() breaker.Status { return e.breaker.Status() }

// Outstanding returns the number of attempts under way.
func (e *Endpoint) Outstanding() int { return int(e.outstanding.Load()) }

// warm puts a new connection into the pool.
func (e *Endpoint) warm(timeout time.Duration) error {
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

// close closes the idle connections, and has those in use closed after their call.
func (e *Endpoint) close() {
	e.retired.Store(true)
	e.closeIfRetired()
}

// closeIfRetired is called after a connection has become idle, because the Endpoint
// may be closed at any moment and is closed only once.
func (e *Endpoint) closeIfRetired() {
	if e.retired.Load() {
		e.pool.CloseIdleConnections()
	}
}
