// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/admission-dispatcher/dispatcher/internal/throttle"
)

// redirected marks the process that TestRedirect starts.
const redirected = "DISPATCHER_TEST_REDIRECTED"

// TestRedirect has libraries complain in a process of their own: what Redirect
// changes is global. Each line is JSON, and no credential is in any.
func TestRedirect(t *testing.T) {
	if os.Getenv(redirected) != "" {
		complain(t)
		return
	}
	unused := httptest.NewServer(nil)
	unused.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRedirect$")
	cmd.Env = append(os.Environ(), redirected+"=1",
		"OTEL_EXPORTER_OTLP_ENDPOINT="+unused.URL,
		"OTEL_EXPORTER_OTLP_HEADERS=api-key=hunter2%ZZ,hunter2,authorization=hunter2-hunter2",
		"OTEL_EXPORTER_OTLP_TIMEOUT=hunter2",
		"OTEL_TRACES_SAMPLER=nonsense")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	lines := 0
	for line := range strings.Lines(stderr.String()) {
		lines++
		if !json.Valid([]byte(line)) || strings.Contains(line, hunter2) {
			t.Errorf("a line says %s", line)
		}
	}
	if lines < 4 || lines > 30 {
		t.Errorf("%d lines:\n%s", lines, stderr.String())
	}
}

// complain does all that libraries have something to say about.
func complain(t *testing.T) {
	Redirect(slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})), os.Getenv)
	log.Print("from the standard library")
	for i := range 100 {
		otel.Handle(fmt.Errorf("error %d with hunter2-hunter2", i))
	}
	exporter, err := otlptracehttp.New(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = exporter.Shutdown(context.Background()) }()
	// As the SDK does it with variables that Check would have refused.
	if err := sdk.NewTracerProvider(sdk.WithBatcher(exporter)).Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestForeignErrorsAreThrottled(t *testing.T) {
	var out bytes.Buffer
	h := foreignErrors{log: slog.New(slog.NewJSONHandler(&out, nil))}
	for range 1000 {
		h.Handle(errors.New("again"))
	}
	if n := strings.Count(out.String(), "\n"); n != throttle.Burst {
		t.Errorf("%d lines", n)
	}
}
