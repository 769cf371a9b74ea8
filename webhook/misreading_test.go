// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/http"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/internal/harness/scripted"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// Whatever a webhook answers to a form that it does not read, it is called with plain
// JSON in the same call, and its breaker knows nothing of it. An answer that says that
// it is too busy, or that offers the form all the same, says nothing of the form.
func TestAnswersOfWhoDoesNotRead(t *testing.T) {
	status := func(code int) scripted.Answer {
		return func(c *scripted.Call) { c.WriteHeader(code) }
	}
	answer := func(header, value, body string) scripted.Answer {
		return func(c *scripted.Call) {
			c.Header().Set(header, value)
			_, _ = c.Write([]byte(body))
		}
	}
	offering := func(code int) scripted.Answer {
		return func(c *scripted.Call) {
			c.Header().Set("Accept-Post", codec.MediaTypeProtobuf)
			c.WriteHeader(code)
		}
	}
	for _, row := range []struct {
		name   string
		answer scripted.Answer
		other  bool // something else is wrong
	}{
		{"415", status(415), false},
		{"400", status(400), false},
		{"404", status(404), false},
		{"500", status(500), false},
		{"502, of a proxy before one that has crashed", status(502), false},
		{"201", status(201), false},
		{"204", status(204), false},
		{"an empty 200", status(200), false},
		{"HTML", answer("Content-Type", "text/html", "<p>what?</p>"), false},
		{"a Content-Encoding", answer("Content-Encoding", "gzip", allowBody), false},
		{"no review", answer("Content-Type", "application/json", "{}"), false},
		{"a panic", func(*scripted.Call) { panic(http.ErrAbortHandler) }, false},
		{"415, with the offer anew", offering(415), false},
		{"499, with the offer anew", offering(499), false},
		{"429", status(429), true},
		{"503", status(503), true},
		{"504", status(504), true},
		{"500, with the offer anew", offering(500), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			target, client := serve(t, func(c *scripted.Call) {
				if c.Request.Header.Get("Content-Type") != codec.MediaTypeJSON {
					row.answer(c)
					return
				}
				c.Respond(`"allowed":true`)
			})
			resp, err := callLearned(t, client, target)
			if allowed := err == nil && resp.Allowed; allowed == row.other {
				t.Errorf("allowed %v, error %v", allowed, err)
			}
			health := target.Endpoints()[0].Health()
			if stats := target.Stats(); !row.other && (stats.Misread != 1 || health.Failures > 0) || row.other && stats.Attempts > 1 {
				t.Errorf("%+v, %+v", stats, health)
			}
			if health.State != breaker.Closed {
				t.Errorf("%+v", health)
			}
		})
	}
}

// A webhook that is simply broken, in every form, is not called twice each time: the
// form is not blamed for a while. After that it may be.
func TestBrokenInEveryForm(t *testing.T) {
	target, client := serve(t, func(c *scripted.Call) { c.WriteHeader(http.StatusInternalServerError) })
	for range 3 {
		if _, err := callLearned(t, client, target); err == nil {
			t.Error("no error")
		}
	}
	stats, health := target.Stats(), target.Endpoints()[0].Health()
	if stats.Attempts != 4 || stats.Misread != 0 || health.Failures != 3 {
		t.Errorf("%+v, %+v", stats, health)
	}
	n, now := negotiationOf(target), time.Now()
	for after, want := range map[time.Duration]bool{blamelessTime - 1: false, blamelessTime: true} {
		n.learn(transport.Blameless, now)
		if got := n.isTrusted(now.Add(after)); got != want {
			t.Errorf("the form may be at fault %v later: %v", after, got)
		}
	}
}

// callLearned makes a call in protobuf, which the webhook has said that it reads.
func callLearned(t *testing.T, c *transport.Client, target *transport.Target) (codec.Response, error) {
	v := view(t)
	defer v.Release()
	m := messageTo(t, &Hook{Target: target, Version: codec.V1}, v, codec.Form{Version: codec.V1, Encoding: codec.Protobuf})
	defer m.Release()
	return c.Call(t.Context(), transport.Call{
		Target: target, Message: m, Cluster: "east", Deadline: time.Now().Add(patience), Repeat: transport.Repeat{Safe: true},
	})
}
