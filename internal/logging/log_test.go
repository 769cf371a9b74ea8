// SPDX-License-Identifier: Apache-2.0

package logging_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/admission-dispatcher/dispatcher/internal/logging"
)

// Every line is one record, whatever is in it, and says which trace it belongs to.
func TestLogLines(t *testing.T) {
	var out bytes.Buffer
	l := logging.New(&out, slog.LevelInfo)
	ctx := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
	}))
	const nasty = "a\nb\r\x1b[31m\u2028\u2029\x85\x00"
	logging.WithTrace(l.Logger).With("k", "v").LogAttrs(ctx, slog.LevelInfo, "admission denied", slog.String("user", nasty))
	l.Close()
	line := out.String()
	if strings.Count(line, "\n") != 1 || strings.ContainsAny(line, "\r\x1b\u2028\u2029\x00") {
		t.Errorf("the line is %q", line)
	}
	var got map[string]string
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		t.Fatal(err)
	}
	if got["trace_id"] != "01000000000000000000000000000000" || got["span_id"] != "0200000000000000" || !strings.HasPrefix(got["user"], "a\nb\r\x1b[31m") {
		t.Errorf("the line says %v", got)
	}
}

// F31: a sink that takes nothing holds up nobody, and what is lost is counted.
func TestLogNeverBlocks(t *testing.T) {
	sink := &slowSink{begin: make(chan struct{})}
	l := logging.New(sink, slog.LevelInfo)
	for range 5000 {
		l.Info("line")
	}
	if n := l.Dropped(); n < 5000-1024-1 || n > 5000-1024 {
		t.Errorf("%d dropped, where one source has a quarter of the queue", n)
	}
	close(sink.begin)
	l.Close()
}

// However many denials there are of one cluster, or of many, what fails open in
// another is told; and however much fails open in one, it is told of the others.
func TestLogIsShared(t *testing.T) {
	sink := &slowSink{begin: make(chan struct{})}
	l := logging.New(sink, slog.LevelInfo)
	for range 3 {
		for i := range 20 {
			for range 500 {
				l.Info("admission denied", "cluster", fmt.Sprint("storm", i), "name", `,"cluster":"quiet"`)
			}
		}
	}
	for range 5000 {
		l.Warn("webhook failed_open", "cluster", "ignoring")
	}
	for i := range 10 {
		l.Warn("webhook failed_open", "cluster", fmt.Sprint("quiet", i))
	}
	close(sink.begin)
	l.Close()
	for i := range 10 {
		if want := fmt.Sprintf(`"cluster":"quiet%d"`, i); !strings.Contains(sink.String(), want) {
			t.Errorf("no line has %s", want)
		}
	}
	if n := strings.Count(sink.String(), "denied"); n < 1800 || n > 2049 { // one is on its way
		t.Errorf("%d lines of denials, want nearly half of 4096", n)
	}
}

// slowSink takes nothing before begin is closed.
type slowSink struct {
	begin chan struct{}
	bytes.Buffer
}

func (s *slowSink) Write(line []byte) (int, error) {
	<-s.begin
	return s.Buffer.Write(line)
}

// The format text has the same records, one line each, whatever is in them.
func TestLogText(t *testing.T) {
	var out bytes.Buffer
	l := logging.NewFormat(&out, slog.LevelInfo, logging.Text)
	l.Warn("TLS handshake failed", "remote", "127.0.0.1:1", "error", "a\nb=\x1b[31m", "n", 1, "none", "", "list", []string{"a"})
	l.Debug("not this")
	l.Close()
	line := out.String()
	const want = ` WARN  TLS handshake failed remote=127.0.0.1:1 error="a\nb=\x1b[31m" n=1 none="" list="[\"a\"]"` + "\n"
	if _, rest, _ := strings.Cut(line, " "); " "+rest != want {
		t.Errorf("the line is %q, want %q", " "+rest, want)
	}
}

// A signal lets the lines for debugging through, and the next one has it as it was.
func TestToggleDebug(t *testing.T) {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelError} {
		var out bytes.Buffer
		l := logging.New(&out, level)
		l.Debug("before")
		l.ToggleDebug()
		l.Debug("while")
		l.ToggleDebug()
		l.Debug("after")
		l.Close()
		text := out.String()
		if !strings.Contains(text, `"while"`) || strings.Contains(text, `"before"`) != (level == slog.LevelDebug) || strings.Contains(text, `"after"`) != (level == slog.LevelDebug) ||
			strings.Count(text, "log level changed") != 2 {
			t.Errorf("%v:\n%s", level, text)
		}
	}
}
