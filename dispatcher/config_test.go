// SPDX-License-Identifier: Apache-2.0

package dispatcher

import (
	"log/slog"
	"strings"
	"testing"
)

// What New refuses is named.
func TestNewRefuses(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"Logger is required":          func(c *Config) { c.Logger = nil },
		"Grace is negative":           func(c *Config) { c.Grace = -1 },
		"Impatience is negative":      func(c *Config) { c.Impatience = -1 },
		"Limits has a negative":       func(c *Config) { c.Limits.Admissions = -1 },
		"Limits has a negative value": func(c *Config) { c.Limits.PerCluster = -1 },
		"Config.Limits has":           func(c *Config) { c.Limits.Bytes = -1 },
		"dispatcher: Config.Limits":   func(c *Config) { c.Limits.ShadowCalls = -1 },
	} {
		c := Config{Logger: slog.New(slog.DiscardHandler)}
		if _, err := New(c); err != nil {
			t.Error(err)
		}
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// The words of logs and metrics, which docs/metrics.md lists.
func TestWords(t *testing.T) {
	results := []string{"allowed", "denied", "refused", "failed", "failed_open", "softened", "skipped", "abandoned", "unknown"}
	for i, want := range results {
		if got := Result(i).String(); got != want {
			t.Errorf("Result %d is %q, want %q", i, got, want)
		}
	}
	decisions := []string{"allowed", "failed_open", "bypassed", "denied", "refused", "failed", "unreadable", "panicked", "unknown"}
	for i, want := range decisions {
		if got := Decision(i).String(); got != want {
			t.Errorf("Decision %d is %q, want %q", i, got, want)
		}
	}
	if Decisions != len(decisions)-1 || Results != len(results)-1 {
		t.Errorf("there are %d decisions and %d results", Decisions, Results)
	}
}
