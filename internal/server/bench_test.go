// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/dispatcher"
	"github.com/admission-dispatcher/dispatcher/internal/server"
)

// prompt is a Decider that costs nothing.
type prompt struct{ server.Decider }

func (prompt) Dispatch(_ context.Context, _ dispatcher.Request, v *dispatcher.Verdict) {
	v.Response = codec.Response{Allowed: true}
}

// BenchmarkAdmission is one admission of 6 KB over a kept-alive TLS connection,
// client included.
func BenchmarkAdmission(b *testing.B) {
	w := newWorld(b, func(cfg *server.Config) { cfg.Decider = prompt{} })
	c := w.dial()
	request := []byte(message{body: strings.Replace(review("1"), `"name":"web"}}`, `"name":"`+strings.Repeat("x", 6000)+`"}}`, 1)}.String())
	expected := c.ask(text(request))
	c.isAllowed(expected, "1")
	if _, err := c.Write(request); err != nil {
		b.Fatal(err)
	}
	got := make([]byte, 4096)
	size, err := c.Read(got)
	if err != nil {
		b.Fatal(err)
	}
	got = got[:size]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(request); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, got); err != nil {
			b.Fatal(err)
		}
	}
}
