// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/admission-dispatcher/dispatcher/breaker"
	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// Whatever a webhook answers to a form that it does not read, it is asked in plain
// JSON and its breaker knows nothing of it. Of one that is too busy, or that offers the
// form all the same, it says nothing.
func TestAnswersOfWhoDoesNotRead(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(code) }
	}
	answer := func(header, value, body string) http.HandlerFunc {
		return func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set(header, value)
			_, _ = io.WriteString(out, body)
		}
	}
	for _, row := range []struct {
		name   string
		answer http.HandlerFunc
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
		{"a panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false},
		{"429", status(429), true},
		{"503", status(503), true},
		{"504", status(504), true},
		{"500, with the offer anew", func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Accept-Post", codec.MediaTypeProtobuf)
			out.WriteHeader(http.StatusInternalServerError)
		}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newHTTP(t, func(out http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if r.Header.Get("Content-Type") != codec.MediaTypeJSON {
					row.answer(out, r)
					return
				}
				out.Header().Set("Content-Type", codec.MediaTypeJSON)
				_, _ = io.WriteString(out, allowBody)
			})
			target := w.target()
			resp, err := w.ask(learnedCall(target))
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

// A webhook that is simply broken, in every form, is not asked everything twice.
func TestBrokenInEveryForm(t *testing.T) {
	w := newHTTP(t, func(out http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		out.WriteHeader(http.StatusInternalServerError)
	})
	target := w.target()
	for range 3 {
		if _, err := w.ask(learnedCall(target)); err == nil {
			t.Error("no error")
		}
	}
	stats, health := target.Stats(), target.Endpoints()[0].Health()
	if stats.Attempts != 4 || stats.Misread != 0 || health.Failures != 3 {
		t.Errorf("%+v, %+v", stats, health)
	}
}

// learnedCall is a call in protobuf, which the webhook has said that it reads.
func learnedCall(target *transport.Target) transport.Call {
	call := callIn(codec.Form{Version: codec.V1, Encoding: codec.Protobuf}, "u-1", target, codec.NewBody([]byte(reviewBody), nil), patience)
	call.Repeat.Safe = true
	return call
}
