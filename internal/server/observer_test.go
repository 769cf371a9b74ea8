// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/server"
	"github.com/admission-dispatcher/dispatcher/internal/throttle"
)

// Whoever is turned away is counted, under the cluster that the credentials belong
// to and under nobody else's name.
func TestTurnedAway(t *testing.T) {
	w := newWorld(t, nil)
	const other = "/v1/clusters/b/validate"
	for name, c := range map[string]struct {
		message message
		as      string
		want    string
	}{
		"the wrong path":            {message{target: "/validate", body: review("1")}, "a", "a no_route"},
		"somebody else's path":      {message{target: other, body: review("1")}, "a", "a forbidden"},
		"a certificate of nobody":   {message{target: other, body: review("1")}, "nobody", " forbidden"},
		"no review":                 {message{body: "{}"}, "a", "a not_review"},
		"the wrong method":          {message{method: "GET"}, "a", "a not_post"},
		"above the cluster's limit": {message{target: "/v1/clusters/small/validate", body: strings.Repeat(" ", 5000) + review("1")}, "small", "small too_large"},
		"something malformed":       {message{headers: "Content-Type: application/json\r\nno colon\r\n"}, "a", "a malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			before := w.turned.counts()[c.want]
			caller := w.dialAs(pki.Subject{CommonName: c.as})
			if got := caller.ask(c.message); got.status < 400 {
				t.Errorf("status %d", got.status)
			}
			if n := w.turned.counts()[c.want] - before; n != 1 {
				t.Errorf("%q counted %d times: %v", c.want, n, w.turned.counts())
			}
		})
	}
	reasons := server.Reasons()
	for key := range w.turned.counts() {
		if _, reason, _ := strings.Cut(key, " "); !slices.Contains(reasons, reason) {
			t.Errorf("%q is not in Reasons", reason)
		}
	}
}

// emptied waits until no connection is open.
func (w *world) emptied() {
	w.t.Helper()
	w.eventually("the connections are closed", func() bool { return w.server.Connections() == 0 })
}

func (w *world) eventually(what string, is func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !is(); {
		if time.Now().After(end) {
			w.t.Fatalf("waited in vain until %s", what)
		}
		runtime.Gosched()
	}
}

// Connections that come to no request are counted too: nobody is known then.
func TestTurnedAwayConnections(t *testing.T) {
	w := newWorld(t, func(c *server.Config) { c.Connections = 1 })
	stranger := w.dialPlain()
	stranger.send(text("GET / HTTP/1.1\r\n\r\n"))
	w.counts(" handshake")
	_ = stranger.Close()
	w.emptied()
	first := w.dial()
	first.isAllowed(first.ask(good("1")), "1")
	w.dialPlain()
	w.counts(" too_many_connections")
}

func (w *world) counts(want string) {
	w.t.Helper()
	w.eventually(want+" is counted", func() bool { return w.turned.counts()[want] == 1 })
}

// A review that cannot be judged is the Decider's to deny, with what is known of
// it: who asks, its uid, its trace. It is never throttled away.
func TestUnreadableIsDeclined(t *testing.T) {
	w := newWorld(t, nil)
	const id = "0af7651916cd43dd8448eb211c80319c"
	traced := "traceparent: 00-" + id + "-b7ad6b7169203331-01\r\n"
	c := w.dial()
	for i := range 12 {
		uid := fmt.Sprint("u-", i)
		got := c.ask(message{extra: traced, body: strings.Replace(review(uid), "CREATE", "DESTROY", 1)})
		if got.status != http.StatusOK || !strings.Contains(got.body, `"allowed":false`) || !strings.Contains(got.body, uid) {
			t.Fatalf("status %d, %s", got.status, got.body)
		}
	}
	w.judge.none(t)
	if n := len(w.judge.declined); n != 12 {
		t.Errorf("%d of 12 were declined", n)
	}
	if got, want := w.judge.declined[0], "a u-0 "+id+" invalid admission request"; !strings.HasPrefix(got, want) {
		t.Errorf("declined %q, want %q...", got, want)
	}
	if diff := cmp.Diff(map[string]int(nil), w.turned.counts()); diff != "" {
		t.Errorf("turned away: %s", diff)
	}
}

// A flood of strangers does not keep a cluster's refusals out of the log.
func TestStrangersDoNotSilenceClusters(t *testing.T) {
	w := newWorld(t, nil)
	wrong := message{target: "/validate", body: review("1")}
	for range 8 {
		w.dialAs(pki.Subject{CommonName: "nobody"}).ask(wrong)
	}
	w.dial().ask(wrong)
	if lines := strings.Join(w.logs.lines(), "\n"); !strings.Contains(lines, `"cluster":"a"`) {
		t.Errorf("nothing about cluster a: %s", lines)
	}
}

// What is refused of one cluster does not keep what is refused of another out of the
// log.
func TestClustersDoNotSilenceEachOther(t *testing.T) {
	w := newWorld(t, nil)
	wrong := message{target: "/validate", body: review("1")}
	for range 8 {
		w.dial().ask(wrong)
	}
	w.dialAs(pki.Subject{DNSNames: []string{"b.example.com"}}).ask(wrong)
	lines := strings.Join(w.logs.lines(), "\n")
	if strings.Count(lines, `"cluster":"a"`) != throttle.Burst || !strings.Contains(lines, `"cluster":"b"`) {
		t.Errorf("the log is %s", lines)
	}
}

// The value of a panic may quote an object: neither log nor caller is told.
func TestPanicIsNotQuoted(t *testing.T) {
	const secret = "swordfish"
	w := newWorld(t, nil)
	w.judge.do = func(context.Context, dispatcher.Request) codec.Response { panic(secret) }
	got := w.dial().ask(good("u-1"))
	if got.status != http.StatusOK || !strings.Contains(got.body, `"allowed":false`) {
		t.Errorf("status %d, %s", got.status, got.body)
	}
	log := strings.Join(w.logs.lines(), "\n")
	if strings.Contains(log+got.body, secret) || !strings.Contains(log, "a value of type string") {
		t.Errorf("the log: %s", log)
	}
	if n := w.turned.counts()["a panicked"]; n != 1 {
		t.Errorf("counted %d times", n)
	}
}
