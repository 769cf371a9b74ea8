// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"log/slog"

	"github.com/admission-dispatcher/dispatcher/chain"
	"github.com/admission-dispatcher/dispatcher/transport"
)

// callObserver is told what calls do: it counts that, and logs when the form changes
// in which a webhook is sent reviews.
type callObserver struct {
	counters
	log *slog.Logger
}

// counters are what counts of a webhook.Observer.
type counters interface {
	Attempted(ctx context.Context, a transport.Attempt)
	Refused(ctx context.Context, owner any)
	Disagreed(ctx context.Context, owner any)
	Misread(ctx context.Context, owner any)
}

// Switched implements webhook.Observer.
func (o callObserver) Switched(ctx context.Context, s transport.Switch) {
	attrs := []slog.Attr{slog.String("url", s.Target.URL()), slog.String("reads", s.Reads)}
	if w, ok := s.Owner.(*chain.Entry); ok {
		attrs = append(attrs, slog.String("configuration", w.Configuration), slog.String("webhook", w.Name))
	}
	if s.Err == nil {
		o.log.LogAttrs(ctx, slog.LevelInfo, "a webhook offers another form of reviews", attrs...)
		return
	}
	o.log.LogAttrs(ctx, slog.LevelWarn, "a webhook is sent plain reviews again", append(attrs, slog.String("error", s.Err.Error()))...)
}
