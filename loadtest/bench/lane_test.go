// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/admission-dispatcher/dispatcher/loadtest/payload"
)

// paced returns how many admissions pace sends to what stalls for that long at every
// tenth one.
func paced(t *testing.T, stall time.Duration) (n int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int64
		ln := fasthttputil.NewInmemoryListener()
		server := &fasthttp.Server{NoDefaultServerHeader: true, NoDefaultDate: true, Handler: func(ctx *fasthttp.RequestCtx) {
			if requests.Add(1)%10 == 0 {
				<-time.After(stall)
			}
			allow(ctx)
		}}
		go func() { _ = server.Serve(ln) }()
		w := &lane{target: &target{name: "stalling"}, url: "http://webhook/", client: &fasthttp.HostClient{
			Addr: "webhook:80", MaxConns: pacers, Dial: func(string) (net.Conn, error) { return ln.Dial() },
		}}
		review := payload.PodCreate()
		took, err := w.pace(&review, 1000, time.Second)
		if err != nil {
			t.Error(err)
		}
		n = len(took)
		w.client.CloseIdleConnections()
		_ = server.Shutdown()
		<-time.After(time.Hour) // until what cleans up every now and then has seen it
	})
	return n
}

// What stalls is sent no less: its callers make up for it.
func TestPace(t *testing.T) {
	quick, slow := paced(t, 0), paced(t, 300*time.Millisecond)
	if quick != slow || quick < 900 || quick > 1100 {
		t.Errorf("%d admissions, and %d to what stalls", quick, slow)
	}
}
