// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/transport"
)

// Every Target is looked at when the process starts, a few at a time, and again, less and
// less often, while it does not answer. The log says so once, of so many Targets.
func TestLookout(t *testing.T) {
	var targets []*transport.Target
	for i := range 2 * lookLines {
		target, err := transport.NewTarget(transport.TargetSpec{URL: fmt.Sprintf("https://w%d.example.com/", i)})
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, target)
	}
	var (
		out              bytes.Buffer
		looks, now, most atomic.Int64
		fails            atomic.Bool
	)
	fails.Store(true)
	l := &lookout{
		targets: func() []*transport.Target { return targets },
		probe: func(*transport.Target) error {
			looks.Add(1)
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer now.Add(-1)
			if fails.Load() {
				return errors.New("refused")
			}
			return nil
		},
		log:   slog.New(slog.NewTextHandler(&out, nil)),
		tried: map[*transport.Target]*tried{},
	}
	l.lines.Burst = lookLines
	start := time.Now()
	for _, c := range []struct {
		after time.Duration
		looks int
	}{
		{0, 40},
		{time.Second, 40},       // not yet
		{2 * time.Second, 80},   // after 2 s
		{4 * time.Second, 80},   // then after 4
		{6 * time.Second, 120},  // which is over
		{time.Hour, 160},        // no longer than a minute
		{62 * time.Minute, 200}, // once more
	} {
		if l.round(t.Context(), start.Add(c.after)); int(looks.Load()) != c.looks {
			t.Errorf("after %v: %d looks, want %d", c.after, looks.Load(), c.looks)
		}
	}
	if most.Load() > looksAtOnce {
		t.Errorf("%d looks at a time", most.Load())
	}
	if n := strings.Count(out.String(), "does not answer"); n < lookLines || n > 2*lookLines {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
	fails.Store(false)
	l.round(t.Context(), start.Add(70*time.Minute))
	if n := strings.Count(out.String(), "webhook target answers"); n < lookLines || len(l.tried) > 0 {
		t.Errorf("%d lines say that it answers, %d targets are left", n, len(l.tried))
	}
}
