// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"time"
)

func TestBudget(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	for _, tt := range []struct {
		name                               string
		timeout, registered, longest, want time.Duration
	}{
		{"five per cent", 10 * s, 0, 30 * s, 9500 * ms},
		{"five per cent of the maximum", 60 * s, 0, 30 * s, 28500 * ms},
		{"not less than 100 ms", s, 0, 30 * s, 900 * ms},
		{"2 s is where both are equal", 2 * s, 0, 30 * s, 1900 * ms},
		{"as registered", 10 * s, 10 * s, 30 * s, 9500 * ms},
		{"more than registered", 10 * s, 5 * s, 30 * s, 9500 * ms},
		{"rounded up by the caller", 9 * s, 10 * s, 30 * s, 7550 * ms},
		{"rounded up, short", 2 * s, 10 * s, 30 * s, 950 * ms},
		{"rounded up, half is left", s, 10 * s, 30 * s, 450 * ms},
		{"rounded up, above the maximum", 20 * s, 30 * s, 10 * s, 8500 * ms},
		{"shorter than the way back", 50 * ms, 0, 30 * s, 0},
		{"shorter than the way back, rounded up", 50 * ms, 10 * s, 30 * s, 0},
	} {
		t.Run("A20 "+tt.name, func(t *testing.T) {
			if got := budget(tt.timeout, tt.registered, tt.longest); got != tt.want {
				t.Errorf("budget(%v, %v, %v) = %v, want %v", tt.timeout, tt.registered, tt.longest, got, tt.want)
			}
		})
	}
}

func FuzzParseTimeout(f *testing.F) {
	for _, query := range []string{"", "timeout=10s", "a=b&timeout=1h&c", "timeout=1s&timeout=1s", "timeout", "&&=&", "10s", "0s", "9999s", "10000s", "9300000000s", "s", "1.5s", "+1s", "10ms"} {
		f.Add([]byte(query))
	}
	f.Fuzz(func(t *testing.T, query []byte) {
		if timeout, ok := parseTimeout(query, time.Second); ok && timeout <= 0 {
			t.Errorf("parseTimeout(%q) = %v", query, timeout)
		}
		want, err := time.ParseDuration(string(query))
		if got, ok := parseSeconds(query); ok && (err != nil || got != want) {
			t.Errorf("parseSeconds(%q) = %v, want %v, %v", query, got, want, err)
		}
	})
}
