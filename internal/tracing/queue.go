// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/admission-dispatcher/dispatcher/internal/otlp"
	"github.com/admission-dispatcher/dispatcher/internal/throttle"
)

// spanQueue is the SDK's batch processor, with a count of what is given up: the
// SDK tells nobody what its full queue drops. At most size spans wait for the
// exporter; whatever the collector does, nobody else waits.
type spanQueue struct {
	sdk.SpanProcessor // the batch processor
	size              int64
	waiting           atomic.Int64
	dropped           atomic.Int64
}

func newSpanQueue(cfg *Config) *spanQueue {
	size := cfg.Environment.QueueSize()
	q := &spanQueue{size: int64(size)}
	options := []sdk.BatchSpanProcessorOption{sdk.WithMaxQueueSize(size)}
	if cfg.Delay > 0 {
		options = append(options, sdk.WithBatchTimeout(cfg.Delay))
	}
	q.SpanProcessor = sdk.NewBatchSpanProcessor(&countedExporter{
		SpanExporter: cfg.Exporter,
		queue:        q,
		log:          cfg.Logger,
		secrets:      cfg.Environment.Secrets(),
	}, options...)
	return q
}

// OnEnd implements sdk.SpanProcessor.
func (q *spanQueue) OnEnd(s sdk.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if q.waiting.Add(1) > q.size {
		q.waiting.Add(-1)
		q.dropped.Add(1)
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// countedExporter counts what leaves a spanQueue.
type countedExporter struct {
	sdk.SpanExporter
	queue   *spanQueue
	log     *slog.Logger
	secrets otlp.Secrets
	said    throttle.Throttle
}

// ExportSpans implements sdk.SpanExporter. It keeps its error: the SDK's way to
// tell it is a global one.
func (e *countedExporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	e.queue.waiting.Add(-int64(len(spans)))
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if err != nil {
		e.queue.dropped.Add(int64(len(spans)))
		e.record(len(spans), err)
	}
	return nil
}

func (e *countedExporter) record(spans int, err error) {
	if leftOut, ok := e.said.Pass(time.Now()); ok {
		e.log.Warn("spans dropped: the collector does not take them",
			"spans", spans, "error", e.secrets.Hide(err), "left_out", leftOut)
	}
}
