// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// root of the repository.
const root = "../.."

// The page is what the runs that are kept say, and nobody has edited it.
func TestPage(t *testing.T) {
	runs, err := keptRuns(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) == 0 {
		t.Skip("no run is kept: make bench UPDATE=1")
	}
	var want bytes.Buffer
	if err := writePage(&want, runs); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), read(filepath.Join(root, pageFile))); diff != "" {
		t.Errorf("bench -from %s -update 1 writes the page again: %s", kept[0], diff)
	}
}

// runOf is a run on a machine, of P1 at a cost and of what only has.
func runOf(cpu string, cost float64, only string) *report {
	r := &report{Machine: machine{CPU: cpu, Cores: 2, Kernel: "6.1", Go: "go1.26", Nginx: "nginx/1", Commit: cpu + "-abc", Date: "2026-01-02", Rounds: 5}}
	for _, f := range []figure{
		{"P1", "cost", "nginx", atMost(1.5, times).or(1.35), fixed{reading: against([]float64{cost}, []float64{10}, "us")}},
		{"P9", only, "", atMost(2, "KiB"), fixed{reading: absolute([]float64{1}, "KiB")}},
	} {
		r.Results = append(r.Results, f.take(nil))
	}
	r.Profiles = []profile{{Webhooks: 1, PerAdmission: cost, Shares: []share{{string(kernelWrite), 75}, {string(rest), 25}}}}
	return r
}

// A run is kept when the other one is made again, and what only one of them has is
// empty in the other.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	page := func(r *report, number int) string {
		if err := r.keep(dir, number); err != nil {
			t.Fatal(err)
		}
		return read(filepath.Join(dir, pageFile))
	}
	if got := page(runOf("A", 12, "x"), 1); strings.Contains(got, "second run:") || !strings.Contains(got, "| P1 | cost | nginx | <= 1.5 x (1.35) | 12.0 us | 10.0 us | 1.20 | stretch met |\n") {
		t.Error(got)
	}
	page(runOf("B", 20, "y"), 2)
	got := page(runOf("C", 14, "x"), 1)
	for _, line := range []string{
		"|  | first run | second run |",
		"| machine | 2 cores of C | 2 cores of B |",
		"| kernel | Linux 6.1 | Linux 6.1 |",
		"| Go | go1.26 | go1.26 |",
		"| nginx | nginx/1 | nginx/1 |",
		"| commit | C-abc | B-abc |",
		"| P1 | cost | nginx | <= 1.5 x (1.35) | 14.0 us | 10.0 us | 1.40 | met | 20.0 us | 10.0 us | 2.00 | not met |",
		"| P9 | x |  | <= 2 KiB | 1.00 KiB |  | 1.00 | met |  |  |  |  |",
		"| component | webhooks: 1 | second run: webhooks: 1 |",
		"| kernel: write | 10.5 us, 75.0 % | 15.0 us, 75.0 % |",
		"| rest | 3.50 us, 25.0 % | 5.00 us, 25.0 % |",
		"| all | 14.0 us | 20.0 us |",
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
}

// A part of a run does not get onto the page.
func TestKeepsWholeRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "part.json")
	if err := writeFile(file, runOf("A", 12, "x").writeJSON); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-from", file, "-update", "2"}, &out, io.Discard); err == nil || !strings.Contains(err.Error(), "the run has 2") {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "stretch met") {
		t.Error(out.String())
	}
}

// A row of one run is found in the other by what it is.
func TestFiguresDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range figures() {
		if key := strings.Join([]string{f.id, f.what, f.peer}, "|"); seen[key] {
			t.Errorf("two rows are %s", key)
		} else {
			seen[key] = true
		}
	}
}

func TestArguments(t *testing.T) {
	for _, args := range []string{"-update 1 -figure P1", "-update 2 -profile x", "-update 3", "-update -1", "-figure P99"} {
		if _, err := parseArguments(strings.Fields(args)); err == nil {
			t.Errorf("%s: no error", args)
		}
	}
	ask, err := parseArguments([]string{"-update", "2"})
	if err != nil || ask.update != 2 || len(ask.figures) != len(figures()) {
		t.Errorf("%+v, %v", ask, err)
	}
}

// What cannot be carried is not asked for, and said.
func TestCarried(t *testing.T) {
	for _, test := range []struct {
		peak, rate float64
		remark     string
	}{
		{16000, 4000, ""},
		{5000, 4000, ""},
		{4999, 2000, "at 2000 /s, as the most that this machine carries is 4999 /s"},
		{3273, 1500, "at 1500 /s, as the most that this machine carries is 3273 /s"},
		{950, 450, "at 450 /s, as the most that this machine carries is 950 /s"},
		{0, 5, "at 5 /s, as the most that this machine carries is 0 /s"},
	} {
		if rate, remark := carried(4000, test.peak); rate != test.rate || remark != test.remark {
			t.Errorf("of %v: %v, %q", test.peak, rate, remark)
		}
	}
	slow := [][]round{{{rate: 4000}, {rate: 3990}}, {{rate: 3700}, {rate: 3710}}}
	if got := late(slow[:1], 4000); got != "" {
		t.Error(got)
	}
	if got := late(slow, 4000); got != "only 3705 /s of 4000 /s were carried" {
		t.Error(got)
	}
}
