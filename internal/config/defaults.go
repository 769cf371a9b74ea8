// SPDX-License-Identifier: Apache-2.0

package config

import "time"

// defaults returns what holds for every field that a file leaves out. Decoding
// goes on top, so that a zero that somebody wrote stays a zero.
func defaults() *Config {
	return &Config{
		Listen:         ":8443",
		TLS:            TLS{ClientAuth: Require},
		Admin:          Admin{Listen: "127.0.0.1:8081"},
		ReloadInterval: span(2 * time.Second),
		Bypass:         Bypass{Defaults: true},
		Limits: Limits{
			RequestBytes:  8 << 20,
			ResponseBytes: 4 << 20,
			Connections:   4096,
			ShadowCalls:   256,
		},
		Deadline: Deadline{
			Default: span(10 * time.Second),
			Max:     span(maxDeadline),
			Grace:   span(100 * time.Millisecond),
		},
		Timeouts: Timeouts{
			Headers: span(5 * time.Second),
			Body:    span(5 * time.Second),
			Idle:    span(2 * time.Minute),
			Connect: span(time.Second),
		},
		LameDuck: span(10 * time.Second),
		DNS: DNS{
			Interval: span(10 * time.Second),
			Timeout:  span(5 * time.Second),
		},
		Log: Log{Level: "info"},
	}
}

func span(d time.Duration) Duration { return Duration{Duration: d} }
