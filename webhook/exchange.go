// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// exchange sends one request and reads its answer. It is fasthttp's own round
// trip, but for one thing: the uid of an admission is the same in all its
// attempts and rounds, so it cannot tell a stale answer. A connection that has
// anything to read before the request is sent, or after the answer has been
// read, is closed and not used again. That also finds most connections that the
// webhook closed while they were idle.
type exchange struct {
	retired atomic.Bool // no connection is kept any more
	fresh   sync.Map    // the *fasthttp.Requests that must have a connection of their own
}

// RoundTrip implements fasthttp.RoundTripper. It never asks for a retry.
func (x *exchange) RoundTrip(pool *fasthttp.HostClient, req *fasthttp.Request, resp *fasthttp.Response) (retry bool, err error) {
	deadline := time.Now().Add(req.GetTimeOut())
	_, fresh := x.fresh.Load(req)
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return false, fasthttp.ErrTimeout
		}
		cc, err := pool.AcquireConn(left, false)
		if err != nil {
			return false, err
		}
		c, ours := cc.Conn().(*conn)
		if ours && (!c.wake() || c.served && fresh) {
			pool.CloseConn(cc)
			continue
		}
		reused := ours && c.served
		clean, err := talk(pool, cc.Conn(), req, resp, deadline)
		if clean && !x.retired.Load() && (!ours || c.rest()) {
			pool.ReleaseConn(cc)
		} else {
			pool.CloseConn(cc)
		}
		var silent *silentError
		if errors.As(err, &silent) {
			silent.reused = reused
		}
		return false, err
	}
}

// silentError says that a connection ended before any byte of an answer.
type silentError struct {
	err    error
	reused bool // it had been open for a while
}

func (e *silentError) Error() string { return e.err.Error() }

func (e *silentError) Unwrap() error { return e.err }
