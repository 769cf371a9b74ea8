// SPDX-License-Identifier: Apache-2.0

package mirrorstatus_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/internal/mirrorstatus"
	"github.com/admission-dispatcher/dispatcher/registry/manifest"
)

// write writes what a mirror says, and returns the directory.
func write(t *testing.T, text []byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, mirrorstatus.File), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What is written is what is read.
func TestThereAndBack(t *testing.T) {
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	want := mirrorstatus.Mirror{
		Generation: "abc", Since: now, Behind: now, Heard: now, Objects: map[string]int{"Cluster": 2},
		Next:    &mirrorstatus.NextGeneration{Generation: "def", At: now, Lost: []string{"every Cluster"}, Quarantined: true},
		Refused: []mirrorstatus.RefusedObject{{Object: "Cluster/a", Kept: true, Reason: mirrorstatus.Invalid, Problems: []manifest.Problem{{Field: "spec", Reason: "no"}}}},

		RefusedCount: 1, RefusedByReason: map[string]int{mirrorstatus.Invalid: 1},
		Quarantined: []mirrorstatus.QuarantinedGeneration{{Generation: "bad", Since: now, Reason: "it crashed"}}, Crashed: true,
		Resources: []mirrorstatus.MirroredResource{{Resource: "clusters", Synced: true, Heard: now, Error: "no"}}, Error: "full",
		Workloads: []mirrorstatus.MirroredWorkload{{Cluster: "a", Served: 1, Answered: true, Error: "late", Held: "abc"}}, Replicas: 3,
	}
	text, err := want.Write()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, *mirrorstatus.Read(write(t, text))); diff != "" {
		t.Error(diff)
	}
}

// However much a mirror refuses, its status is within bounds, and one that is not, or is
// none at all, is not taken.
func TestBounds(t *testing.T) {
	var m mirrorstatus.Mirror
	for i := range 5000 {
		m.Refused = append(m.Refused, mirrorstatus.RefusedObject{Object: fmt.Sprint("Cluster/", i), Problems: []manifest.Problem{{Reason: strings.Repeat("x", 10_000)}}})
		m.Workloads = append(m.Workloads, mirrorstatus.MirroredWorkload{Cluster: fmt.Sprint(i)})
		m.Quarantined = append(m.Quarantined, mirrorstatus.QuarantinedGeneration{Generation: fmt.Sprint(i)})
	}
	m.RefusedCount = len(m.Refused)
	text, err := m.Write()
	if err != nil || len(text) > mirrorstatus.MaxBytes {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	got := mirrorstatus.Read(write(t, text))
	if n := len(got.Refused); n == 0 || n > mirrorstatus.MaxRefused || got.RefusedCount != 5000 {
		t.Errorf("%d of %d are listed", n, got.RefusedCount)
	}
	if n := len(got.Quarantined); n != mirrorstatus.MaxQuarantined || got.Quarantined[n-1].Generation != "4999" {
		t.Errorf("%d are quarantined: %+v", n, got.Quarantined)
	}
	long := mirrorstatus.Read(write(t, []byte(`{"refused":[`+strings.Repeat(`{},`, 3000)+`{}]}`)))
	if n := len(long.Refused); n != mirrorstatus.MaxRefused || long.Error != "" {
		t.Errorf("of a long list %d are shown, error %q", n, long.Error)
	}
	for what, text := range map[string]string{"half a file": `{"generation":`, "a large one": `{"generation":"` + strings.Repeat("x", mirrorstatus.MaxBytes) + `"}`} {
		if m := mirrorstatus.Read(write(t, []byte(text))); m.Error == "" || m.Generation != "" || m.Refused == nil || m.Objects == nil {
			t.Errorf("%s: %+v", what, m)
		}
	}
	if m := mirrorstatus.Read(write(t, []byte("{}"+strings.Repeat(" ", mirrorstatus.MaxBytes)))); !strings.Contains(m.Error, "more than") {
		t.Errorf("one that is too large: %+v", m)
	}
	if m := mirrorstatus.Read(t.TempDir()); !strings.Contains(m.Error, "no such file") {
		t.Errorf("without a file: %+v", m)
	}
}

// What is said of why a mirror is behind is one thing, the gravest.
func TestBehind(t *testing.T) {
	next := &mirrorstatus.NextGeneration{Generation: "abc"}
	held := &mirrorstatus.NextGeneration{Generation: "abc", Lost: []string{"every Cluster"}}
	var got []string
	for _, m := range []mirrorstatus.Mirror{{}, {Next: next}, {Next: held}, {Next: &mirrorstatus.NextGeneration{Lost: held.Lost, Quarantined: true}}, {Next: held, Crashed: true}} {
		got = append(got, m.BehindBecause())
	}
	if want := []string{"", mirrorstatus.Pending, mirrorstatus.HeldBack, mirrorstatus.Quarantine, mirrorstatus.CrashedWith}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if want := "kubectl annotate registries.dispatcher.dev registry --overwrite dispatcher.dev/confirm-shrink=abc"; held.Confirm() != want {
		t.Errorf("%s", held.Confirm())
	}
}
