// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"time"

	"github.com/valyala/fasthttp"
)

// exchange sends one request and reads its answer. It is fasthttp's own round
// trip, but for one thing: the uid of an admission is the same in all its
// attempts and rounds, so it cannot tell a stale answer. A connection that has
// anything to read before the request is sent, or after the answer has been
// read, is closed and not used again. That also finds most connections that the
// webhook closed while they were idle.
type exchange struct{}

// RoundTrip implements fasthttp.RoundTripper. It never asks for a retry.
func (exchange) RoundTrip(pool *fasthttp.HostClient, req *fasthttp.Request, resp *fasthttp.Response) (retry bool, err error) {
	deadline := time.Now().Add(req.GetTimeOut())
	for {
		cc, err := pool.AcquireConn(time.Until(deadline), false)
		if err != nil {
			return false, err
		}
		c, ours := cc.Conn().(*conn)
		if ours && c.used && c.readable() {
			pool.CloseConn(cc)
			continue
		}
		if ours {
			c.used = true
		}
		clean, err := talk(pool, cc.Conn(), req, resp, deadline)
		if clean && (!ours || c.rest()) {
			pool.ReleaseConn(cc)
		} else {
			pool.CloseConn(cc)
		}
		return false, err
	}
}
