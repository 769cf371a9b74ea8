// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/admission-dispatcher/dispatcher/internal/mirrorstatus"
)

// What the mirror says of itself can be watched, and there is nothing where there is none.
func TestMirror(t *testing.T) {
	f, m := newFleet(t, 1, 2), newMetrics(t)
	if err := m.Watch(f.source()); err != nil {
		t.Fatal(err)
	}
	f.mirror = &mirrorstatus.Mirror{
		Generation: "0123456789abcdef", Since: time.Unix(1_000_000, 0), Heard: time.Unix(1_000_500, 0),
		Objects: map[string]int{"Cluster": 3, "WebhookBinding": 2}, RefusedByReason: map[string]int{mirrorstatus.Invalid: 4, mirrorstatus.Waiting: 1},
		Next:        &mirrorstatus.NextGeneration{Generation: "fedcba", Lost: []string{"every Cluster"}},
		Quarantined: []mirrorstatus.QuarantinedGeneration{{Generation: "bad"}},
	}
	expect(t, scrape(t, m), map[string]string{
		`dispatcher_mirror_info{generation="0123456789ab"}`: "1",
		`dispatcher_mirror_generation_timestamp_seconds`:    "1e+06",
		`dispatcher_mirror_api_heard_timestamp_seconds`:     "1.0005e+06",
		`dispatcher_mirror_objects{state="accepted"}`:       "5",
		`dispatcher_mirror_objects{state="invalid"}`:        "4",
		`dispatcher_mirror_objects{state="unresolved"}`:     "0",
		`dispatcher_mirror_objects{state="waiting"}`:        "1",
		`dispatcher_mirror_behind{reason="held_back"}`:      "1",
		`dispatcher_mirror_behind{reason="pending"}`:        "0",
		`dispatcher_mirror_behind{reason="quarantined"}`:    "0",
		`dispatcher_mirror_behind{reason="crashed"}`:        "0",
		`dispatcher_mirror_quarantined`:                     "1",
	})
	f.mirror = mirrorstatus.Read(t.TempDir()) // there is no file
	expect(t, scrape(t, m), map[string]string{
		`dispatcher_mirror_info{generation="0123456789ab"}`: "",
		`dispatcher_mirror_generation_timestamp_seconds`:    "",
		`dispatcher_mirror_api_heard_timestamp_seconds`:     "0",
	})
	f.mirror = nil
	if text := scrape(t, m); strings.Contains(text, "\ndispatcher_mirror") {
		t.Error("a process without a mirror has series of one")
	}
}

func expect(t *testing.T, text string, want map[string]string) {
	t.Helper()
	for series, v := range want {
		if got := value(text, series); got != v {
			t.Errorf("%s is %q, want %q", series, got, v)
		}
	}
}
