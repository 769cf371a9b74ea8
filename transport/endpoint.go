// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"crypto/tls"
	"fmt"
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

// Outstanding returns the number of attempts under way at all Endpoints.
func (t *Target) Outstanding() int {
	n := 0
	for _, e := range t.Endpoints() {
		n += e.Outstanding()
	}
	return n
}

// Connections returns the number of open connections to all Endpoints.
func (t *Target) Connections() int {
	n := 0
	for _, e := range t.Endpoints() {
		n += e.pool.ConnsCount()
	}
	return n
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

func dialTCP(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", address.String())
}

// dialer is how a Client connects.
type dialer struct {
	policy  AddressPolicy
	timeout time.Duration // TCP and TLS together
	dial    func(context.Context, netip.AddrPort) (net.Conn, error)
}

// dial connects within the shorter of timeout and the dialer's own. The address
// is judged here, where it is dialled, whatever was judged before.
func (e *Endpoint) dial(timeout time.Duration) (net.Conn, error) {
	if err := e.dialer.policy.Check(e.address); err != nil {
		return nil, &dialError{stage: "forbidden address", err: err}
	}
	short := timeout < e.dialer.timeout*9/10
	ctx, cancel := context.WithTimeout(context.Background(), min(timeout, e.dialer.timeout))
	defer cancel()
	deadline, _ := ctx.Deadline()
	queued, err := e.queue(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { <-e.dials }()
	raw, err := e.dialer.dial(ctx, e.address)
	if err != nil {
		return nil, &dialError{stage: "connect", short: short, queued: queued, late: time.Since(deadline), err: err}
	}
	plain := &records{Conn: raw}
	secured := tls.Client(plain, e.origin.tls)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, &dialError{stage: "TLS handshake", tls: true, short: short, queued: queued, late: time.Since(deadline), err: err}
	}
	return newConn(plain, secured), nil
}

// queue waits until a dial may begin, and reports whether it had to.
func (e *Endpoint) queue(ctx context.Context) (queued bool, err error) {
	select {
	case e.dials <- struct{}{}:
		return false, nil
	default:
	}
	select {
	case e.dials <- struct{}{}:
		return true, nil
	case <-ctx.Done():
		return true, &dialError{stage: "wait for other handshakes", queued: true, err: ctx.Err()}
	}
}

// dialError says at which stage a connection failed.
type dialError struct {
	stage  string
	tls    bool
	short  bool          // the call had less time than a connection may take
	queued bool          // others were dialling, so that it had less
	late   time.Duration // after its deadline
	err    error
}

func (e *dialError) Error() string { return fmt.Sprintf("%s: %v", e.stage, e.err) }

func (e *dialError) Unwrap() error { return e.err }
