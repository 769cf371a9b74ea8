// SPDX-License-Identifier: Apache-2.0

package load

import (
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/loadtest/history"
)

func TestProgress(t *testing.T) {
	p := NewProgress()
	p.Add(&history.Call{Status: 200, Allowed: true, Done: 10 * time.Millisecond})
	p.Add(&history.Call{Status: 200, Code: 403, Done: 10 * time.Millisecond})
	p.Add(&history.Call{Err: "connection reset", Done: 10 * time.Millisecond})
	const want = "2s of 10s: 3 calls, 1 allowed, 1 denied, 0 failed, 0 fail open, 0 shed, 1 lost; lately p50 10.0ms, p99 10.0ms"
	if got := p.Line(2*time.Second, 10*time.Second); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	p.Add(&history.Call{Status: 200, Allowed: true, Done: time.Millisecond})
	const later = "3s of 10s: 4 calls, 2 allowed, 1 denied, 0 failed, 0 fail open, 0 shed, 1 lost; lately p50 1.0ms, p99 1.0ms"
	if got := p.Line(3*time.Second, 10*time.Second); got != later {
		t.Errorf("got  %s\nwant %s", got, later)
	}
}
