// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"time"
)

// parseTimeout returns the value of ?timeout= in a raw query, or byDefault if
// there is none. It must be a positive duration and stand there once (A20).
func parseTimeout(query []byte, byDefault time.Duration) (timeout time.Duration, ok bool) {
	timeout = byDefault
	for seen := false; len(query) > 0; {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte("&"))
		name, value, _ := bytes.Cut(pair, []byte("="))
		if string(name) != "timeout" {
			continue
		}
		d, err := time.ParseDuration(string(value))
		if err != nil || d <= 0 || seen {
			return 0, false
		}
		timeout, seen = d, true
	}
	return timeout, true
}

// The part of a timeout that is kept for the way back, and its floor.
const (
	slackDivisor = 20 // 5 %
	minSlack     = 100 * time.Millisecond
)

// budget is how long an admission may take, from the arrival of its headers,
// when the caller asked for timeout (docs/semantics.md, Deadline). registered is
// the timeout under which the cluster registered us, 0 if unknown. A caller that
// asks for less than it registered has used up part of its time, and has rounded
// what is left up to a whole second.
func budget(timeout, registered, longest time.Duration) time.Duration {
	t := min(timeout, longest)
	t = max(0, t-max(minSlack, t/slackDivisor))
	if timeout < registered {
		t = max(t-time.Second, t/2)
	}
	return t
}
