// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// It looks for idle connections at intervals, and ends when there are none.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*TCPDialer).tcpAddrsClean")) // one a process
}

// Every call is recorded, once, with what was sent and what was answered.
func TestRun(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Request struct {
				UID    string
				Object json.RawMessage
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || r.URL.Query().Get("timeout") != "3s" {
			http.Error(w, "bad", http.StatusBadRequest)
			return
		}
		allowed := !strings.HasSuffix(review.Request.UID, "0")
		_, _ = fmt.Fprintf(w, `{"response":{"uid":%q,"allowed":%v,"warnings":["w"],"auditAnnotations":{"hash":%q},"status":{"code":403,"message":"no"}}}`,
			review.Request.UID, allowed, history.Hash(review.Request.Object))
	}))
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	security := &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12}
	calls := Run(t.Context(), Config{
		Address: strings.TrimPrefix(server.URL, "https://"), Start: time.Now(), Prefix: "p", Seed: 1, Timeout: 3 * time.Second,
		Clusters: []Cluster{{Name: "east", TLS: security}, {Name: "west", TLS: security, Weight: 2}},
		Rate:     200, Duration: 300 * time.Millisecond, Phases: []history.Phase{history.Validating, history.Mutating},
	})
	seen := map[string]bool{}
	for _, c := range calls {
		if c.Err != "" || c.Status != 200 || c.UIDAnswered != c.UID || c.Annotations["hash"] != c.BodyHash || len(c.Warnings) != 1 {
			t.Errorf("%+v", c)
		}
		if c.Allowed == strings.HasSuffix(c.UID, "0") || c.Sent < c.Intended || c.Done < c.Sent {
			t.Errorf("%+v", c)
		}
		seen[c.UID] = true
	}
	if len(seen) != len(calls) || len(calls) < 20 {
		t.Errorf("%d uids of %d calls", len(seen), len(calls))
	}
}

// A Summary counts each call once, in the class that it belongs to.
func TestSummarize(t *testing.T) {
	call := func(cluster string, took time.Duration, c history.Call) history.Call {
		c.Cluster, c.Done, c.Status = cluster, took, 200
		return c
	}
	calls := []history.Call{
		call("east", time.Millisecond, history.Call{Allowed: true}),
		call("east", 2*time.Millisecond, history.Call{Allowed: true, Annotations: map[string]string{"dispatcher.dev.failed-open": "a"}}),
		call("east", 3*time.Millisecond, history.Call{Code: 403}),
		call("west", 4*time.Millisecond, history.Call{Code: 503}),
		call("west", 5*time.Millisecond, history.Call{Code: 429}),
		call("west", 6*time.Millisecond, history.Call{Err: "gone"}),
	}
	list := Summarize(calls)
	if len(list) != 3 || list[0].Cluster != "" || list[1].Cluster != "east" || list[1].Calls != 3 {
		t.Fatalf("%+v", list)
	}
	all := list[0]
	if all.Allowed != 1 || all.FailOpen != 1 || all.Denied != 1 || all.Failed != 1 || all.Shed != 1 || all.Lost != 1 || all.Calls != 6 {
		t.Errorf("%+v", all)
	}
	var out bytes.Buffer
	if err := WriteTable(&out, list); err != nil || !strings.Contains(out.String(), "P99.9") || !strings.Contains(out.String(), "5.0ms") {
		t.Errorf("%v:\n%s", err, &out)
	}
	if all.Latency.Max.String() != "5.0ms" || len(all.Latency.Buckets) != 3 || all.Reasons[0] != (Reason{"gone", 1}) {
		t.Errorf("%+v, %+v", all.Latency, all.Reasons)
	}
	out.Reset()
	if err := WriteText(&out, &all); err != nil || !strings.Contains(out.String(), "1 of 6 calls were lost:\n       1  gone\n") || !strings.Contains(out.String(), "up to       5ms        3 ##") {
		t.Errorf("%v:\n%s", err, &out)
	}
	if text, err := json.Marshal(all); err != nil || !strings.Contains(string(text), `"maxSeconds":0.005`) || !strings.Contains(string(text), `{"upToSeconds":0.001000,"calls":1}`) {
		t.Errorf("%s, %v", text, err)
	}
}

// A caller gives up when its time is over, and closes the connection.
func TestGivesUp(t *testing.T) {
	left := make(chan struct{}, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done() // the connection has gone
		left <- struct{}{}
	}))
	defer server.Close()
	calls := Run(t.Context(), Config{
		Address: strings.TrimPrefix(server.URL, "https://"), Start: time.Now(), Rate: 1, Duration: time.Millisecond, Timeout: time.Second,
		Clusters: []Cluster{{Name: "east", TLS: &tls.Config{InsecureSkipVerify: true}}},
	})
	if len(calls) != 1 {
		t.Fatalf("%d calls", len(calls))
	}
	if c := calls[0]; !c.GaveUp || c.Err == "" || c.Done-c.Sent < c.Timeout {
		t.Errorf("%+v", c)
	}
	<-left
}

// A caller that did not run cannot tell when an answer came, and waits for it.
func TestWaitsWhileStill(t *testing.T) {
	const timeout = 20 * time.Millisecond
	near, far := net.Pipe()
	defer func() { _ = near.Close() }()
	c := &conn{Conn: near, pulse: newPulse(time.Now()), timeout: timeout} // a pulse that does not beat
	if err := c.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		t.Fatal(err)
	}
	go func() {
		<-time.After(5 * timeout)
		_, _ = far.Write([]byte("late"))
		_ = far.Close()
	}()
	if text, err := io.ReadAll(c); err != nil || string(text) != "late" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestStall(t *testing.T) {
	p := newPulse(time.Now())
	for _, at := range []int{0, 1, 2, 302, 303, 304, 404, 405} {
		p.note(time.Duration(at) * time.Millisecond)
	}
	for _, c := range []struct{ from, now, want int }{
		{0, 405, 398},   // both
		{100, 405, 301}, // what of them was within the call
		{303, 405, 99},  // one of them
		{303, 350, 45},  // within
		{302, 304, 0},
		{405, 505, 99}, // a beat that has not come yet
	} {
		if got := p.stood(time.Duration(c.from)*time.Millisecond, time.Duration(c.now)*time.Millisecond); got != time.Duration(c.want)*time.Millisecond {
			t.Errorf("from %d to %d ms: %v, want %d ms", c.from, c.now, got, c.want)
		}
	}
}

// A connection that has ended while it was idle is noticed before anything is sent.
func TestConnectionThatHasEnded(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	near, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = near.Close() }()
	far, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c := watch(near)
	if _, err := io.WriteString(c, "once"); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(far, make([]byte, len("once"))); err != nil {
		t.Fatal(err)
	}
	_ = far.Close()
	for !c.(*watched).over() { // on its way
		runtime.Gosched()
	}
	if n, err := io.WriteString(c, "again"); n != 0 || !errors.Is(err, errGone) {
		t.Error(n, err)
	}
}
