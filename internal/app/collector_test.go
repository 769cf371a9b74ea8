// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	metricservice "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// The protocols of OTLP, as the environment names them.
const (
	overHTTP = "http/protobuf"
	overGRPC = "grpc"
)

// otlpReceiver is a collector that keeps what it is sent.
type otlpReceiver struct {
	mu      sync.Mutex
	spans   []*traces.Span
	metrics []*metrics.ResourceMetrics
}

// newReceiver starts a collector and makes the environment name it.
func newReceiver(t *testing.T, protocol string) *otlpReceiver {
	t.Helper()
	r := &otlpReceiver{}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+r.listen(t, protocol))
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
	return r
}

// listen serves until the test is over.
func (r *otlpReceiver) listen(t *testing.T, protocol string) (address string) {
	t.Helper()
	if protocol == overHTTP {
		s := httptest.NewServer(http.HandlerFunc(r.serve))
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	traceservice.RegisterTraceServiceServer(s, traceReceiver{otlpReceiver: r})
	metricservice.RegisterMetricsServiceServer(s, metricReceiver{otlpReceiver: r})
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(ln) })
	t.Cleanup(func() { s.Stop(); serving.Wait() })
	return ln.Addr().String()
}

// serve is the receiver over HTTP.
func (r *otlpReceiver) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err == nil {
		err = r.take(req.URL.Path, body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func (r *otlpReceiver) take(path string, body []byte) error {
	switch path {
	case "/v1/traces":
		var sent traceservice.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &sent); err != nil {
			return err
		}
		r.takeSpans(&sent)
	case "/v1/metrics":
		var sent metricservice.ExportMetricsServiceRequest
		if err := proto.Unmarshal(body, &sent); err != nil {
			return err
		}
		r.takeMetrics(&sent)
	default:
		return fmt.Errorf("%s is no path of OTLP", path)
	}
	return nil
}

func (r *otlpReceiver) takeSpans(sent *traceservice.ExportTraceServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range sent.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			r.spans = append(r.spans, scope.Spans...)
		}
	}
}

func (r *otlpReceiver) takeMetrics(sent *metricservice.ExportMetricsServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.metrics = append(r.metrics, sent.ResourceMetrics...)
}

// traceReceiver and metricReceiver are the receiver over gRPC.
type traceReceiver struct {
	traceservice.UnimplementedTraceServiceServer
	*otlpReceiver
}

func (r traceReceiver) Export(_ context.Context, sent *traceservice.ExportTraceServiceRequest) (*traceservice.ExportTraceServiceResponse, error) {
	r.takeSpans(sent)
	return &traceservice.ExportTraceServiceResponse{}, nil
}

type metricReceiver struct {
	metricservice.UnimplementedMetricsServiceServer
	*otlpReceiver
}

func (r metricReceiver) Export(_ context.Context, sent *metricservice.ExportMetricsServiceRequest) (*metricservice.ExportMetricsServiceResponse, error) {
	r.takeMetrics(sent)
	return &metricservice.ExportMetricsServiceResponse{}, nil
}

// received returns the spans of one trace so far.
func (r *otlpReceiver) received(trace string) []*traces.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*traces.Span
	for _, s := range r.spans {
		if hex.EncodeToString(s.TraceId) == trace {
			found = append(found, s)
		}
	}
	return found
}

// pushed returns the newest push, nil if there was none.
func (r *otlpReceiver) pushed() *metrics.ResourceMetrics {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.metrics) == 0 {
		return nil
	}
	return r.metrics[len(r.metrics)-1]
}

// text returns everything that was received, in words.
func (r *otlpReceiver) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var text strings.Builder
	for _, s := range r.spans {
		fmt.Fprintln(&text, s.String())
	}
	for _, m := range r.metrics {
		fmt.Fprintln(&text, m.String())
	}
	return text.String()
}
