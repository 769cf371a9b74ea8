// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/app"
	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/tracing"
)

// An admission that is under way when the process stops has all of its time to be
// answered.
func TestDrainAnswersWhatIsUnderWay(t *testing.T) {
	r := newRig(t)
	r.configure("deadline: {default: 1s, max: 1s}")
	r.play((*call).hang)
	r.start()
	answer := r.asks(question{})
	r.eventually("a call is under way", func() bool { return len(r.calls("policy")) > 0 })
	r.process.end()
	if got := <-answer; got.err != nil || got.status != http.StatusOK || got.allowed || !strings.Contains(got.text, "policy.example.com") {
		t.Errorf("%+v", got)
	}
	if !r.logged(`"drained"`) || r.logged("still open") {
		t.Error("the log does not say that nothing was cut off")
	}
}

// A caller that does not come to the end of its request cannot hold up the end for
// longer than an admission may take. That is no failure, and it is said.
func TestDrainEnds(t *testing.T) {
	r := newRig(t)
	r.configure("deadline: {default: 100ms, max: 100ms}\ntimeouts: {headers: 1h, idle: 1h}")
	r.start()
	conns := make([]net.Conn, 8)
	for i := range conns {
		conns[i] = r.dialAs("east")
		_, _ = io.WriteString(conns[i], "POST /v1/clusters/east/")
	}
	for range 5 {
		r.ask(question{}) // by now some have been read
	}
	r.within(patience, r.process.end)
	for _, c := range conns {
		_ = c.SetReadDeadline(time.Now().Add(patience))
		if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Error("the connection is still open")
		}
	}
	if r.logged(`"drained"`) || !r.logged("connections were still open when the drain was over") {
		t.Error("the log does not say that connections were cut")
	}
}

// gate is a log that stops whoever writes a certain line, until it is opened.
type gate struct {
	slog.Handler
	message string
	once    *sync.Once
	reached chan struct{}
	opened  chan struct{}
}

// Handle implements slog.Handler.
func (g gate) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == g.message {
		g.once.Do(func() { close(g.reached) })
		<-g.opened
	}
	return g.Handler.Handle(ctx, r)
}

// Run returns when nothing of the process runs any more: neither what goes on in the
// background, nor a call that has outlived its admission.
func TestNothingRunsAfterRun(t *testing.T) {
	for line, until := range map[string]func(r *rig){
		"certificates refused; the last good ones stay": func(r *rig) { r.write("serving.crt", nil) },
		"shadow webhook answered":                       func(r *rig) { r.allows(question{}) },
	} {
		t.Run(line, func(t *testing.T) {
			r := newRig(t)
			r.bind("mode: Shadow")
			g := gate{slog.NewJSONHandler(r, nil), line, new(sync.Once), make(chan struct{}), make(chan struct{})}
			r.process = r.run(must(app.New(r.load(r.config), app.Options{Logger: slog.New(g)})))
			open := sync.OnceFunc(func() { close(g.opened) })
			t.Cleanup(open)
			r.process.awaitReady()
			until(r)
			<-g.reached
			r.process.stop()
			r.eventually("it is drained", func() bool { return r.logged(`"drained"`) })
			select {
			case err := <-r.process.done:
				r.process.done <- err
				t.Error("Run has returned")
			case <-time.After(100 * time.Millisecond): // for it to go wrong
			}
			open()
			r.process.end()
		})
	}
}

// The connections to webhooks are closed at the end, those that are idle too.
func TestWebhooksAreLeftAtTheEnd(t *testing.T) {
	w := newWorld(t)
	var open atomic.Int64
	server := w.newWebhook(w.authority, pki.OnLoopback("counting"), w.serveWebhook)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		case http.StateActive, http.StateIdle, http.StateHijacked:
		}
	}
	server.StartTLS()
	w.webhook.URL = server.URL
	w.configure("policy")
	p := w.start("lameDuck: 0s\n")
	if v, err := ask(w.clientOf(p.awaitReady())); err != nil || !v.allowed || open.Load() == 0 {
		t.Fatalf("%+v, %v, %d connections", v, err, open.Load())
	}
	p.end()
	eventually(t, "all are closed", func() bool { return open.Load() == 0 })
}

// Reload looks at the sources at once.
func TestReloadReadsSources(t *testing.T) {
	w := newWorld(t)
	w.says(`"allowed":false,"status":{"message":"no"}`)
	p := w.start("lameDuck: 0s\nreloadInterval: 1h\n")
	c := w.clientOf(p.awaitReady())
	w.configure("other")
	p.app.Reload()
	eventually(t, "the change has come", func() bool {
		got, err := ask(c)
		return err == nil && strings.Contains(got.message, `"other.example.com"`)
	})
}

// Who asks for the spans gets them, whatever the environment says.
func TestSpansAreRecorded(t *testing.T) {
	w, spans := newWorld(t), &tracing.Recorder{}
	p := w.run(must(app.New(w.load(fileConfig+"lameDuck: 0s\n"), app.Options{Logger: slog.New(slog.DiscardHandler), Spans: spans})))
	askTraced(t, w.clientOf(p.awaitReady()), sampled)
	eventually(t, "the trace is there", func() bool {
		trace := spans.Admission("u-1")
		return len(trace) > 2 && trace[0].Trace == sampledTrace && trace[0].Parent == callersSpan
	})
}

// What New has begun it ends where it fails, and says why.
func TestNewThatFails(t *testing.T) {
	newReceiver(t, overHTTP)
	t.Setenv("OTEL_METRICS_EXPORTER", "otlp")
	w := newWorld(t)
	w.write("decisions/is-a-directory", nil)
	cfg := w.load(fileConfig + "telemetry: {decisionLog: {file: " + filepath.Join(w.dir, "decisions") + "}}\n")
	a, err := app.New(cfg, app.Options{Logger: slog.New(slog.DiscardHandler)})
	if err == nil || a != nil || !strings.Contains(err.Error(), "decisions") {
		t.Errorf("it is made: %v", err)
	}
}
