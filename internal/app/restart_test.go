// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestRestart is a rolling restart: callers that keep their connections and never
// pause see no failed call when a process is told to stop and a successor takes
// new connections.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	first := w.start("lameDuck: 500ms\n")
	var front atomic.Value // the address that new connections go to
	front.Store(first.awaitReady())

	var (
		callers sync.WaitGroup
		calls   atomic.Int64
		failed  atomic.Int64
		over    = make(chan struct{})
	)
	for range 8 {
		client := w.client(func() (net.Conn, error) { return net.Dial("tcp", front.Load().(string)) })
		callers.Go(func() { callUntil(t, client, over, &calls, &failed) })
	}
	reached := func(n int64) func() bool { return func() bool { return calls.Load() >= n } }
	eventually(t, "calls before", reached(100))

	second := w.start("lameDuck: 0s\n")
	front.Store(second.awaitReady())
	before := calls.Load()
	first.end()
	eventually(t, "calls after", reached(before+200))
	close(over)
	callers.Wait()
	if failed.Load() > 0 {
		t.Errorf("%d of %d calls failed", failed.Load(), calls.Load())
	}
	t.Logf("%d calls, none failed", calls.Load())
}

// callUntil asks without a pause.
func callUntil(t *testing.T, c *http.Client, over <-chan struct{}, calls, failed *atomic.Int64) {
	for {
		select {
		case <-over:
			return
		default:
		}
		got, err := ask(c)
		if err != nil || !got.allowed {
			failed.Add(1)
			t.Errorf("call %d: %+v, %v", calls.Load(), got, err)
		}
		calls.Add(1)
	}
}

// A process that is stopping says so, goes on answering, and has its callers leave.
func TestLameDuck(t *testing.T) {
	r := newRig(t)
	r.configure("lameDuck: 1s")
	r.start()
	client := r.clientAs("east")
	if r.allows(question{client: client}).close {
		t.Error("a caller is sent away before")
	}
	r.process.stop()
	r.eventually("it is said", func() bool { return r.logged(`"stopping"`) })
	if !r.allows(question{client: client}).close {
		t.Error("a caller that asks again and again stays")
	}
	if status, body := r.process.readiness(); status != http.StatusServiceUnavailable || !strings.Contains(body, "stopping") {
		t.Errorf("readiness is %d %s", status, body)
	}
}
