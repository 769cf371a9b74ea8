// SPDX-License-Identifier: Apache-2.0

package forward_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// F45: no more requests at a time than are allowed; the next one fails at once, and those
// under way are not hurt.
func TestBusy(t *testing.T) {
	begun, free := make(chan struct{}, 2), make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		begun <- struct{}{}
		<-free
		_, _ = io.WriteString(rw, "{}")
	})
	w.settings.Requests = 1
	w.start()
	first := make(chan answer, 1)
	go func() { first <- w.call(path0, nil) }()
	<-begun
	if got := w.call(path0, nil); got.status != http.StatusServiceUnavailable {
		t.Errorf("beyond the limit: %+v", got)
	}
	if _, text := w.admin("/metrics"); !strings.Contains(text, "dispatcher_forward_requests_in_flight 1") || !strings.Contains(text, `dispatcher_forward_requests_total{outcome="busy"} 1`) {
		t.Errorf("the metrics do not say so:\n%s", text)
	}
	close(free)
	if got := <-first; got.status != http.StatusOK {
		t.Errorf("the first: %+v", got)
	}
	if got := w.call(path0, nil); got.status != http.StatusOK {
		t.Errorf("the slot is not free again: %+v", got)
	}
}

// F45: connections beyond the limit wait.
func TestConnections(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "{}") })
	w.settings.Connections = 1
	w.start()
	idle, err := net.Dial("tcp", w.forwarder.Address().String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if got := w.send(ctx, http.MethodPost, path0, strings.NewReader("")); got.err == nil {
		t.Errorf("a second connection is served: %+v", got)
	}
	_ = idle.Close()
	if got := w.call(path0, nil); got.status != http.StatusOK {
		t.Errorf("when there is room: %+v", got)
	}
}

// F45: a forwarder that is told to stop serves on, tells its callers to go, and ends when the
// last request has its answer.
func TestStop(t *testing.T) {
	begun, free := make(chan struct{}, 2), make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("slow") {
			begun <- struct{}{}
			<-free
		}
		_, _ = io.WriteString(rw, "{}")
	})
	w.settings.LameDuck = 2 * time.Second
	w.start()
	if got := w.call(path0, nil); got.status != http.StatusOK || got.header.Get("Connection") == "close" {
		t.Fatalf("%+v", got)
	}
	slow := make(chan answer, 1)
	go func() { slow <- w.call(path0+"?slow", nil) }()
	<-begun
	w.end()
	w.end = nil
	for {
		if status, _ := w.admin("/readyz"); status == http.StatusServiceUnavailable {
			break
		}
	}
	if got := w.call(path0, nil); got.status != http.StatusOK {
		t.Errorf("a lame duck: %+v", got)
	}
	close(free)
	if got := <-slow; got.status != http.StatusOK {
		t.Errorf("the slow one: %+v", got)
	}
	if err := <-w.ended; err != nil {
		t.Error(err)
	}
}

// F45: a call that is under way when the lame duck ends gets its answer.
func TestStopWaits(t *testing.T) {
	begun, free := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-free
		_, _ = io.WriteString(rw, "{}")
	})
	w.start()
	slow := make(chan answer, 1)
	go func() { slow <- w.call(path0, nil) }()
	<-begun
	w.end()
	w.end = nil
	for { // until it takes no more connections
		conn, err := net.Dial("tcp", w.forwarder.Address().String())
		if err != nil {
			break
		}
		_ = conn.Close()
	}
	close(free)
	if got := <-slow; got.status != http.StatusOK {
		t.Errorf("the answer: %+v", got)
	}
	if err := <-w.ended; err != nil {
		t.Error(err)
	}
}
