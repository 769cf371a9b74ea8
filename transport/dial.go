// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"time"
)

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
func (e *Endpoint) dial(timeout time.Duration) (*conn, error) {
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
