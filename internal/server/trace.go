// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/propagation"
)

// traced returns ctx with the caller's trace, if its headers have one that is
// valid (W3C Trace Context). Baggage is not taken over.
func traced(ctx context.Context, h *fasthttp.RequestHeader) context.Context {
	if len(h.Peek("traceparent")) == 0 {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, carrier{h})
}

// carrier is a request's headers as a propagation.TextMapCarrier.
type carrier struct{ h *fasthttp.RequestHeader }

func (c carrier) Get(key string) string { return string(c.h.Peek(key)) }
func (c carrier) Set(key, value string) { c.h.Set(key, value) }
func (c carrier) Keys() []string        { return nil } // nobody asks
