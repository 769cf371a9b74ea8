// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMain makes the test binary the webhooks' process where bench would make
// itself that.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == webhooksMode {
		exitOn(serveWebhooks(os.Args[2], os.Args[3], os.Stdout))
		return
	}
	m.Run()
}

// The processes start and can be compared, whatever comes out.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts everything")
	}
	if _, _, err := split(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "r.json")
	var out bytes.Buffer
	err := run(t.Context(), []string{"-rounds", "1", "-span", "50ms", "-figure", "P1,P1f", "-json", file}, &out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	got, err := readReport(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Results) != 6 || len(got.Profiles) != 2 || got.Machine.Cores == 0 || !strings.Contains(out.String(), string(kernelWrite)) {
		t.Errorf("%+v", got)
	}
	for _, r := range got.Results {
		if r.Score == nil && r.Why != errNoNginx.Error() {
			t.Errorf("%+v", r)
		}
	}
}

func TestSpread(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   *spread
		text   string
	}{
		{nil, nil, ""},
		{[]float64{2}, &spread{2, 2, 2}, "2.00"},
		{[]float64{3, 1, 2}, &spread{2, 1, 3}, "2.00 [1.00-3.00]"},
		{[]float64{4, 1, 2, 3}, &spread{2.5, 1, 4}, "2.50 [1.00-4.00]"},
		{[]float64{0}, &spread{}, "0"},
		{[]float64{1234.5, 0.01234, 12.34}, &spread{12.34, 0.01234, 1234.5}, "12.3 [0.012-1234]"},
	} {
		got := spreadOf(test.values)
		if diff := cmp.Diff(test.want, got); diff != "" || got.String() != test.text {
			t.Errorf("%v: %q, want %q; %s", test.values, got, test.text, diff)
		}
	}
}

// A ratio is one of the same round, not of medians.
func TestQuotients(t *testing.T) {
	if diff := cmp.Diff([]float64{2, 0.5}, quotients([]float64{2, 10, 1}, []float64{1, 20, 0, 4})); diff != "" {
		t.Error(diff)
	}
}

func TestBenchmarkOutput(t *testing.T) {
	const text = `goos: linux
BenchmarkDecode/pod-6KB/ours-2         	   50000	     21000 ns/op	 280.50 MB/s	       0 B/op	       0 allocs/op
BenchmarkDecode/pod-6KB/jsontext-2     	   20000	     63000 ns/op
BenchmarkMatch/5_of_10_000 	   20000	     63 ns/op
--- BENCH: BenchmarkMatch-2
BenchmarkCompile-2	       3	 500000000 ns/op	         6.5 MiB-held
PASS
`
	round := parseBenchmarks(text)
	want := metrics{
		"Decode/pod-6KB/ours":     {"ns/op": 21000, "MB/s": 280.5, "B/op": 0, "allocs/op": 0},
		"Decode/pod-6KB/jsontext": {"ns/op": 63000},
		"Match/5_of_10_000":       {"ns/op": 63},
		"Compile":                 {"ns/op": 500000000, "MiB-held": 6.5},
	}
	if diff := cmp.Diff(want, round); diff != "" {
		t.Error(diff)
	}
	if got := column([]metrics{round, {}, round}, "Compile", "ns/op", 1e9); !cmp.Equal(got, []float64{0.5, 0.5}) {
		t.Errorf("%v", got)
	}
}

// What the tests print is still what the patterns look for.
func TestPrintouts(t *testing.T) {
	const costTable = `
goal, 10 webhooks behind the dispatcher        measured          goal
caller, to one called directly                 1.33 (0.84-1.74)  <= 1.30  not met
caller and dispatcher, to ten called directly  0.51 (0.45-0.82)  <= 0.25  not met
`
	const faults = `progress: P11 pair 1: p99.9 1.003s without hedging, 15ms with: 67 x; 3.4 % extra attempts
progress: P11 pair 2: p99.9 1.002s without hedging, 20ms with: 50 x; 4.0 % extra attempts
progress: P11 pair 2: p99.9 12.5ms in theory, with a delay of 5.5ms: 1.60 x that
progress: F8 pair 1: p99.9 105ms without hedging, 15ms with: 7 x; 2.0 % extra attempts
progress: P12 at  2 x: 75 answered a second, 95 % of the best; shed within 12ms
progress: P12 at 10 x: 74 answered a second, 93 % of the best; shed within 1.2s
`
	for _, test := range []struct {
		what, text string
		source     printed
		want       []float64 // scores
	}{
		{"cost", costTable, costs("caller, to one called directly"), []float64{0.84, 1.33, 1.74}},
		{"cost together", costTable, costs("caller and dispatcher, to ten called directly"), []float64{0.45, 0.51, 0.82}},
		{"hedging", faults, hedging("P11"), []float64{1003. / 15, 1002. / 20}},
		{"extra attempts", faults, extraAttempts("P11"), []float64{3.4, 4}},
		{"theory", faults, theory("P11"), []float64{1.6}},
		{"another row", faults, hedging("F8"), []float64{7}},
		{"goodput", faults, goodput(10), []float64{93}},
		{"shedding", faults, shedding(), []float64{12, 1200}},
	} {
		got, err := test.source.find(test.text)
		if diff := cmp.Diff(test.want, got.score); err != nil || diff != "" {
			t.Errorf("%s: %v, %s", test.what, err, diff)
		}
	}
	if _, err := goodput(5).find(faults); err == nil {
		t.Error("found what is not there")
	}
}

func TestComplaint(t *testing.T) {
	for text, want := range map[string]string{
		"=== RUN\n    a_test.go:4: wrong\n  call\nFAIL\n": "a_test.go:4: wrong",
		"panic\nexit 2\n": "exit 2",
	} {
		if got := complaint([]byte(text)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// fixed measures nothing.
type fixed struct {
	reading
	err error
}

func (f fixed) measure(*lab) (reading, error) { return f.reading, f.err }

func TestTable(t *testing.T) {
	r := report{Machine: machine{CPU: "a processor", Cores: 2, Commit: "abc"}}
	for _, f := range []figure{
		{"P1", "cost", "nginx", atMost(1.15, times).or(1.1), fixed{reading: against([]float64{11, 12, 13}, []float64{10, 10, 10}, "us")}},
		{"P1", "known", "nginx", goal{}, fixed{reading: against([]float64{2}, []float64{1}, "us")}},
		{"P3", "stretch", "plain", atLeast(5, times).or(6), fixed{reading: against([]float64{6}, []float64{1}, "/s")}},
		{"P4", "no stretch", "plain", atMost(5, times).or(4), fixed{reading: against([]float64{4.5}, []float64{1}, "us")}},
		{"P5", "speed", "codec", atLeast(20, times), fixed{reading: gain([]float64{1, 1, 1}, []float64{20, 30, 40}, "ns/op")}},
		{"P9", "memory", "", atMost(2, "KiB"), fixed{reading: absolute([]float64{2}, "KiB")}},
		{"patch", "as fast", "v4", above(1, times), fixed{reading: gain([]float64{1}, []float64{1}, "ns/op")}},
		{"P7", "nothing", "", atMost(2, "KiB"), fixed{err: errors.New("no benchmark\nin | the table")}},
		{"P8", "empty", "", atMost(2, "KiB"), fixed{}},
	} {
		r.Results = append(r.Results, f.take(nil))
	}
	var text bytes.Buffer
	if err := r.writeText(&text); err != nil {
		t.Fatal(err)
	}
	const want = `FIGURE  WHAT        PEER   GOAL (STRETCH)   OURS        PEER'S      RATIO             MET
P1      cost        nginx  <= 1.15 x (1.1)  12.0 us     10.0 us     1.20 [1.10-1.30]  not met
P1      known       nginx                   2.00 us     1.00 us     2.00              no goal
P3      stretch     plain  >= 5 x (6)       6.00 /s     1.00 /s     6.00              stretch met
P4      no stretch  plain  <= 5 x (4)       4.50 us     1.00 us     4.50              met
P5      speed       codec  >= 20 x          1.00 ns/op  30.0 ns/op  30.0 [20.0-40.0]  met
P9      memory             <= 2 KiB         2.00 KiB                2.00              met
patch   as fast     v4     > 1 x            1.00 ns/op  1.00 ns/op  1.00              not met
P7      nothing            <= 2 KiB                                                   not measured: no benchmark
P8      empty              <= 2 KiB                                                   not measured: nothing was measured
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Error(diff)
	}
}

func TestChoose(t *testing.T) {
	all := []figure{{id: "P1"}, {id: "P1"}, {id: "P2"}, {id: "P13"}}
	for names, want := range map[string]int{"": 4, "P1": 2, "p13,P1": 3} {
		if got, err := choose(all, names); err != nil || len(got) != want {
			t.Errorf("%q: %d figures, %v; want %d", names, len(got), err, want)
		}
	}
	if _, err := choose(all, "P1,P99"); err == nil {
		t.Error("chose a figure that does not exist")
	}
}

func TestModel(t *testing.T) {
	if got := model("processor\t: 0\nmodel name\t: AMD EPYC\nprocessor\t: 1\nmodel name\t: other\n"); got != "AMD EPYC" {
		t.Error(got)
	}
	if got := model(""); got != "an unknown processor" {
		t.Error(got)
	}
}
